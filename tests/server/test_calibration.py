from __future__ import annotations

import asyncio

import numpy as np
import pytest

from server.admission import Admission, demand_of
from server.calibration import calibrate
from server.codec_executor import CodecExecutor


@pytest.mark.parametrize(("workers", "max_batch"), [(1, 64), (2, 3), (1, 1)])
async def test_both_directions_are_measured_and_nothing_stays(tiny_model, workers, max_batch):
    executor = CodecExecutor(tiny_model, workers=workers, max_batch=max_batch)
    try:
        await calibrate(executor, tiny_model)
        for step in ("encode_batch", "decode_batch"):
            fixed_s, each_s = executor.cost.parts_s(step)
            assert fixed_s >= 0
            assert 0 < each_s < 0.08
        assert executor.known_sessions == executor.stats.frames == 0
        places = Admission("measured", executor.cost, workers=workers).most_streams(demand_of("encode", 8), 10_000)
        assert places > 1
        before_s = executor.cost.predict_s("encode_batch", 1)
        session = tiny_model.encoder()
        for _ in range(3):
            await asyncio.wait_for(executor.encode(session, np.zeros(1920, np.float32)), 10)
        assert executor.cost.predict_s("encode_batch", 1) != before_s
    finally:
        executor.close()
