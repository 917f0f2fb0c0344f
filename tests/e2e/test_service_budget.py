"""A service whose weights have a RAM budget: the same codes, and what its window did for whoever asks."""

from __future__ import annotations

import httpx
import numpy as np

from codec_core.clip import encode_clip

OCTETS = {"content-type": "application/octet-stream"}


async def test_codes_are_the_same_and_the_window_is_told(start_service, default_model, speech):
    service = start_service("--model", "default", "--ram-budget", "13MB")
    samples = speech[: 5 * 1920]
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as http:
        answer = await http.post("/v1/encode", params={"levels": 4}, content=samples.tobytes(), headers=OCTETS)
        window = (await http.get("/v1/info")).json()["window"]
    codes = encode_clip(default_model, samples.astype(np.float32) / 32768, 4)
    assert answer.json()["codes"] == codes.tolist()
    assert window["bytes_read"] > 0
    assert window["failed_loads"] == 0
    assert service.stop() == 0


def test_a_resident_model_has_no_window(service):
    assert httpx.get(f"{service.url}/v1/info").json()["window"] is None
