"""The text tokenizer among a model file's metadata: the keys llama.cpp's files have, and what they leave out.

``tokenizer.ggml.*`` hold the pieces, their scores and types, the special ids and the normaliser. How text is cut into pieces,
and what the unknown piece reads as, are in ``tokenizer.sentencepiece.*``; a file of another tool may lack those.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from codec_core.charsmap import check_charsmap
from codec_core.errors import ModelContractError
from codec_core.gguf_file import GgufFile
from codec_core.sentencepiece_model import BYTE, MODEL_TYPES, NORMAL, UNKNOWN, SentencePieceModel

GGML: Final = "tokenizer.ggml."
OWN: Final = "tokenizer.sentencepiece."
MODEL_TYPE_KEY: Final = f"{OWN}model_type"
PIECES_CAP: Final = 1 << 20
"""Most pieces that are read; published tokenizers have up to 48,000."""
_TOKENIZER_NAME: Final = "llama"
"""What files of Moshi call SentencePiece's pieces, whichever its algorithm."""
_DEFAULT_SURFACE: Final = " \u2047 "


def tokenizer_metadata(model: SentencePieceModel) -> list[tuple[str, Any]]:
    """Return the keys of a model's tokenizer, arrays as lists of texts or numpy arrays."""
    ids = [(f"{GGML}{role}_token_id", place) for role, place in sorted(model.special_ids.items())]
    charsmap = np.frombuffer(model.charsmap, np.uint8)
    return [
        (f"{GGML}model", _TOKENIZER_NAME),
        (f"{GGML}tokens", model.pieces),
        (f"{GGML}scores", np.array(model.scores, np.float32)),
        (f"{GGML}token_type", np.array(model.types, np.int32)),
        *ids,
        (f"{GGML}add_bos_token", False),
        (f"{GGML}add_eos_token", False),
        (f"{GGML}add_space_prefix", model.add_dummy_prefix),
        (f"{GGML}remove_extra_whitespaces", model.remove_extra_whitespaces),
        *([(f"{GGML}precompiled_charsmap", charsmap)] if model.charsmap else []),
        (MODEL_TYPE_KEY, model.model_type),
        (f"{OWN}byte_fallback", model.byte_fallback),
        (f"{OWN}unk_surface", model.unknown_surface),
    ]


def read_tokenizer(file: GgufFile) -> SentencePieceModel | None:
    """Read a model's tokenizer; None where the file has none.

    Raises:
        ModelFormatError: a key of another type.
        ModelContractError: keys that do not fit together; names key, found and expected.

    """
    pieces = file.texts(f"{GGML}tokens")
    if pieces is None:
        return None
    if not 1 <= len(pieces) <= PIECES_CAP:
        raise _refusal("tokens", f"{len(pieces)} pieces", f"1 .. {PIECES_CAP}")
    if (kind := file.text(f"{GGML}model")) != _TOKENIZER_NAME:
        raise _refusal("model", f"{kind!a}", f"'{_TOKENIZER_NAME}', pieces of SentencePiece")
    scores, types = _column(file, "scores", ("f32",), len(pieces)), _column(file, "token_type", ("i32", "u32"), len(pieces))
    charsmap = file.numbers(f"{GGML}precompiled_charsmap", ("u8", "i8"))
    model = SentencePieceModel(
        pieces,
        scores.tolist(),
        types.tolist(),
        model_type=_model_type(file),
        byte_fallback=_or(file.flag(f"{OWN}byte_fallback"), BYTE in types),
        unknown_surface=_or(file.text(f"{OWN}unk_surface"), _DEFAULT_SURFACE),
        charsmap=b"" if charsmap is None else charsmap.tobytes(),
        add_dummy_prefix=_or(file.flag(f"{GGML}add_space_prefix"), True),
        remove_extra_whitespaces=_or(file.flag(f"{GGML}remove_extra_whitespaces"), True),
        special_ids=_special_ids(file, len(pieces)),
    )
    check_tokenizer(model)
    return model


def check_tokenizer(model: SentencePieceModel) -> None:
    """Refuse pieces and settings that do not fit together, and a normaliser that leads outside itself.

    Raises:
        ModelContractError: names key, found and expected.

    """
    seen: set[str] = set()
    for place, (piece, score, kind) in enumerate(zip(model.pieces, model.scores, model.types, strict=True)):
        if not piece or "\0" in piece:
            raise _refusal("tokens", f"{piece!a} at index {place}", "pieces of one letter or more, without NUL")
        if piece in seen:
            raise _refusal("tokens", f"{piece[:80]!a} again at index {place}", "every piece once")
        seen.add(piece)
        if not np.isfinite(score):
            raise _refusal("scores", f"{score} at index {place}", "finite values")
        if not NORMAL <= kind <= BYTE:
            raise _refusal("token_type", f"{kind} at index {place}", f"{NORMAL} .. {BYTE}")
        if kind == BYTE and not re.fullmatch("<0x[0-9A-F]{2}>", piece):
            raise _refusal("tokens", f"{piece[:80]!a} of type {BYTE} at index {place}", "'<0x00>' .. '<0xFF>'")
    if (unknown := model.types.count(UNKNOWN)) != 1:
        raise _refusal("token_type", f"{unknown} of type {UNKNOWN}", "one, the unknown piece")
    check_charsmap(model.charsmap, error=ModelContractError, subject=f"key '{GGML}precompiled_charsmap'")


def _column(file: GgufFile, name: str, types: tuple[str, ...], pieces: int) -> Any:
    values = file.numbers(f"{GGML}{name}", types)
    if values is None or len(values) != pieces:
        found = "no such key" if values is None else f"{len(values)} elements"
        raise _refusal(name, found, f"{pieces}, one for each piece")
    return values


def _special_ids(file: GgufFile, pieces: int) -> dict[str, int]:
    ids = {}
    for role in ("unknown", "bos", "eos", "padding"):
        place = file.count(f"{GGML}{role}_token_id")
        if place is not None:
            if place >= pieces:
                raise _refusal(f"{role}_token_id", f"{place}", f"0 .. {pieces - 1}")
            ids[role] = place
    return ids


def _model_type(file: GgufFile) -> str:
    found = file.text(MODEL_TYPE_KEY)
    if found is not None and found not in MODEL_TYPES:
        raise ModelContractError(f"key '{MODEL_TYPE_KEY}'", f"{found!a}", " or ".join(MODEL_TYPES))
    return found or MODEL_TYPES[0]


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _refusal(name: str, found: str, expected: str) -> ModelContractError:
    return ModelContractError(f"key '{GGML}{name}'", found, expected)
