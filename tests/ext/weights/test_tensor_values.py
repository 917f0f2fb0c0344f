"""A value that is not finite is found wherever it lies, and named by tensor and index."""

import numpy as np
import pytest

from codec_core.errors import ModelContractError

from .gguf_bytes import tiny_model, with_values
from .refusal import inspect, refused


@pytest.mark.parametrize(
    "name",
    [
        "mimi.encoder.model.3.conv.conv.weight",
        "mimi.decoder.model.2.convtr.convtr.bias",
        "mimi.encoder_transformer.transformer.layers.1.layer_scale_1.scale",
        "mimi.decoder_transformer.transformer.layers.0.norm2.weight",
        "mimi.quantizer.rvq_rest.vq.layers.30._codebook.embedding",
    ],
)
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
@pytest.mark.parametrize("position", ["first", "last"])
def test_value_that_is_not_finite(tmp_path, name, value, shown, position):
    file = tiny_model()
    place = next(i for i, tensor in enumerate(file.tensors) if tensor.name == name)
    index = 0 if position == "first" else len(file.tensors[place].data) // 4 - 1
    file.tensors[place] = with_values(file.tensors[place], np.float32, {index: value})
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found, error.expected) == (f"tensor '{name}'", f"{shown} at index {index}", "finite values")


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
def test_half_precision_value_that_is_not_finite(tmp_path, value, shown):
    file = tiny_model(half=True)
    file.tensors[0] = with_values(file.tensors[0], np.float16, {17: value})
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{file.tensors[0].name}'", f"{shown} at index 17")


def test_index_past_the_first_part_is_the_tensors_own(tmp_path):
    file = tiny_model(codebook=(256, 512))
    place = len(file.tensors) - 1
    file.tensors[place] = with_values(file.tensors[place], np.float32, {100_000: np.nan, 120_000: np.inf})
    assert refused(tmp_path, file, ModelContractError).found == "NaN at index 100000"


def test_extremes_that_are_finite(tmp_path):
    file = tiny_model()
    largest = float(np.finfo(np.float32).max)
    file.tensors[0] = with_values(file.tensors[0], np.float32, {0: largest, 1: -largest, 2: 1e-45, 3: -0.0})
    assert inspect(tmp_path, file)["weight_class"] == "f32"
