"""Live neural audio codes: an exact, streaming Mimi codec.

::

    from codec_core import CodecModel

    model = CodecModel.open("default")
    encoder = model.encoder(levels=8)
    codes = encoder.encode(pcm)        # float32 [1920] at 24 kHz -> int32 [8]
    decoder = model.decoder(levels=8)
    pcm = decoder.decode(codes)        # int [8] -> float32 [1920]

The language model that speaks these codes: :mod:`codec_core.language_model`. Whole clips: :mod:`codec_core.clip`.
Errors: :mod:`codec_core.errors`, one tree.
"""

from importlib.metadata import version

from codec_core.errors import CodecError
from codec_core.language_info import LanguageModelInfo
from codec_core.language_model import LanguageModel
from codec_core.language_prompt import Prompt
from codec_core.language_session import Given, LanguageSession, Sampling
from codec_core.model import CodecModel, ModelInfo
from codec_core.session import DecoderSession, EncoderSession

__version__ = version("mimi-server")

__all__ = [
    "CodecError",
    "CodecModel",
    "DecoderSession",
    "EncoderSession",
    "Given",
    "LanguageModel",
    "LanguageModelInfo",
    "LanguageSession",
    "ModelInfo",
    "Prompt",
    "Sampling",
    "__version__",
]
