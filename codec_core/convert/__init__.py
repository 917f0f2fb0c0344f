"""Any known Mimi checkpoint to the GGUF file the engine reads."""

from codec_core.convert.converter import ConversionReport, convert_model

__all__ = ["ConversionReport", "convert_model"]
