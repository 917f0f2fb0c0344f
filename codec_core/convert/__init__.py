"""Any known checkpoint of the family to the GGUF file the engine reads: the codec, the language model, voice prompts."""

from codec_core.convert.converter import ConversionReport, convert_model
from codec_core.convert.language_model import LanguageModelReport, convert_language_model
from codec_core.convert.voice import VoiceReport, convert_voice_prompt

__all__ = [
    "ConversionReport",
    "LanguageModelReport",
    "VoiceReport",
    "convert_language_model",
    "convert_model",
    "convert_voice_prompt",
]
