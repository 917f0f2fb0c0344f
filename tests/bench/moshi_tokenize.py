"""What people write without us: Kyutai's PyTorch model over a folder, file by file. Runs where moshi and soundfile are.

    python moshi_tokenize.py CHECKPOINT.safetensors FOLDER OUTPUT LEVELS THREADS

prints a JSON object: files, frames, seconds (model loading left out).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import soundfile
import torch
from moshi.models import loaders


def main(checkpoint: str, folder: str, output: str, levels: int, threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    mimi = loaders.get_mimi(checkpoint, device="cpu", num_codebooks=levels)
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    mimi.encode(torch.zeros(1, 1, 1920))
    began, frames = time.perf_counter(), 0
    for path in files:
        pcm, rate = soundfile.read(path, dtype="float32", always_2d=True)
        assert rate == 24000
        mono = torch.from_numpy(pcm.mean(axis=1))[None, None]
        codes = mimi.encode(torch.nn.functional.pad(mono, (0, -mono.shape[-1] % 1920)))[0]
        np.save(Path(output) / f"{path.stem}.npy", codes.numpy().astype(np.int16))
        frames += codes.shape[-1]
    print(json.dumps({"files": len(files), "frames": frames, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
