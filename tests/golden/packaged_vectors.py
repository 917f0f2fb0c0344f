"""Makes ``codec_core/vectors``, the compact copy of the golden vectors that the package carries:

    python tests/golden/packaged_vectors.py FULL.gguf codec_core/vectors

FULL.gguf is the converted full-size synthetic checkpoint. Everything is cut from ``tests/golden/vectors`` except what NUMERICS
call digests of `kyutai` sound and everything of `ggml` on the default model: no other implementation computes those, so our own
engine pins them, and they change only when a published order of sums does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import soundfile

from codec_core import CodecModel
from codec_core.difference import digest_rows

SOURCE = Path(__file__).parent / "vectors"
FRAME_SAMPLES = 1920
WHOLE = ("tone440", "torture3s")
# Past the wrap of the attention ring, which is at frame 125.
LONG, LONG_FRAMES = "speech30s", 140
DEFAULT, DEFAULT_FRAMES = "sample_2", 50
STAGES_OF = "tone440"
MOST_STEPS = 32
Arrays = dict[str, np.ndarray]


def read(name: str) -> Arrays:
    with np.load(SOURCE / f"{name}.npz") as file:
        return dict(file)


def signal(name: str) -> np.ndarray:
    return soundfile.read(SOURCE / "signals" / f"{name}.wav", dtype="int16")[0]


def digests(pcm: np.ndarray) -> np.ndarray:
    return digest_rows(pcm.reshape(-1, FRAME_SAMPLES))


def whole_signal(name: str, kyutai: CodecModel) -> Arrays:
    """Everything, and the digests of `kyutai` sound."""
    arrays = read(name)
    arrays["kyutai_pcm_digests"] = digests(kyutai.decoder(32).push(arrays["kyutai_codes"]))
    return arrays


def long_signal() -> Arrays:
    """Codes, and the digests of `ggml` sound."""
    arrays = read(LONG)
    cut = {name: values[:, :LONG_FRAMES] for name, values in arrays.items() if "_codes" in name}
    cut["ggml_pcm_digests"] = digests(arrays["ggml_pcm"][: LONG_FRAMES * FRAME_SAMPLES])
    return cut


def stages(numerics: str) -> Arrays:
    """Every stage: some steps as they are, and for `ggml` the digests of all."""
    kept: Arrays = {}
    for name, values in read(f"stages_{numerics}_{STAGES_OF}").items():
        every = -(-values.shape[1] // MOST_STEPS)
        kept[name] = np.ascontiguousarray(values[:, ::every])
        if every > 1:
            kept[f"{name}.steps"] = np.arange(0, values.shape[1], every, dtype=np.int32)
        if numerics != "kyutai":
            kept[f"{name}.digests"] = digest_rows(values.T)
    return kept


def default_signal() -> Arrays:
    """The embedded model: codes by Kyutai's own code in f32 and f64, sound, and what our engine pins."""
    arrays, samples = read("default_model"), DEFAULT_FRAMES * FRAME_SAMPLES
    kyutai, ggml = (CodecModel.open("default", numerics=name) for name in ("kyutai", "ggml"))
    codes = arrays[f"{DEFAULT}_codes"][:, :DEFAULT_FRAMES]
    ggml_codes = ggml.encoder(32).push(signal(DEFAULT)[:samples])
    return {
        "kyutai_codes": codes,
        "kyutai_codes_second": arrays[f"{DEFAULT}_codes_f64"][:, :DEFAULT_FRAMES],
        "kyutai_pcm": arrays[f"{DEFAULT}_pcm"][:samples],
        "kyutai_pcm_digests": digests(kyutai.decoder(32).push(codes)),
        "ggml_codes": ggml_codes.astype(np.int16),
        "ggml_pcm_digests": digests(ggml.decoder(32).push(ggml_codes)),
        "exact_levels": np.int32(8),
        "least_code_match": np.float64(0.995),
    }


def build(full_model: Path) -> dict[str, tuple[Arrays, np.ndarray | None]]:
    """Arrays and signal by file name without suffix."""
    kyutai = CodecModel.open(full_model, numerics="kyutai")
    files: dict[str, tuple[Arrays, np.ndarray | None]] = {
        f"full/{name}": (whole_signal(name, kyutai), signal(name)) for name in WHOLE
    }
    files[f"full/{LONG}"] = long_signal(), signal(LONG)[: LONG_FRAMES * FRAME_SAMPLES]
    for numerics in ("kyutai", "ggml"):
        files[f"full/stages_{numerics}_{STAGES_OF}"] = stages(numerics), None
    files[f"default/{DEFAULT}"] = default_signal(), signal(DEFAULT)[: DEFAULT_FRAMES * FRAME_SAMPLES]
    return files


def write(files: dict[str, tuple[Arrays, np.ndarray | None]], destination: Path) -> None:
    for name, (arrays, pcm) in files.items():
        path = destination / f"{name}.npz"
        (path.parent / "signals").mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **arrays)
        if pcm is not None:
            soundfile.write(path.parent / "signals" / f"{path.stem}.wav", pcm, 24000, subtype="PCM_16")


if __name__ == "__main__":
    write(build(Path(sys.argv[1])), Path(sys.argv[2]))
