"""A language model's file to be spoiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_files import lm_metadata

Arrays = dict[str, np.ndarray]


@dataclass
class File:
    """A model's file to be, for a test to spoil."""

    arrays: Arrays
    metadata: dict[str, Any]

    @classmethod
    def of(cls, model: str, *, split: bool = False) -> File:
        return cls(lm_arrays(model, split=split), lm_metadata(LM_CONFIGS[model]))

    def key(self, name: str, value: Any) -> File:
        """Set a key, or drop it where the value is None."""
        self.metadata.pop(f"moshi.lm.{name}", None)
        if value is not None:
            self.metadata[f"moshi.lm.{name}"] = value
        return self

    def cut_rows(self, name: str, rows: int) -> File:
        self.arrays[name] = self.arrays[name][:-rows]
        return self
