"""Where tensors lie: aligned, inside the file, side by side, and nothing between or after them."""

import pytest

from codec_core.errors import ModelFormatError

from .gguf_bytes import F32, Tensor, tiny_model, u32
from .refusal import inspect, refused

FIRST = "mimi.encoder.model.0.conv.conv.weight"
SECOND = "mimi.encoder.model.0.conv.conv.bias"


def test_offset_misaligned(tmp_path):
    file = tiny_model()
    file.tensor(SECOND).offset = 100
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found, error.expected) == (f"tensor '{SECOND}' offset", "100", "a multiple of 32")


@pytest.mark.parametrize("offset", [2**40, 2**63, 2**64 - 32])
def test_offset_past_the_end_or_wrapping(tmp_path, offset):
    file = tiny_model()
    file.tensor(SECOND).offset = offset
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found) == (f"tensor '{SECOND}' offset", f"{offset} for 16 bytes")
    assert error.expected.startswith("inside the file's ")


def test_tensors_that_overlap_or_are_aliased(tmp_path):
    file = tiny_model()
    file.tensor(SECOND).offset = 96
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found) == (f"tensor '{SECOND}' offset", "96, an overlap")
    assert error.expected == f"128, the end of tensor '{FIRST}'"
    file.tensor(SECOND).offset = 0
    error = refused(tmp_path, file, ModelFormatError)
    assert error.found == "0, an overlap"


def test_bytes_that_belong_to_no_tensor(tmp_path):
    file = tiny_model()
    file.tensors[0] = Tensor(FIRST, (7, 1, 4), F32, file.tensors[0].data + bytes(64))
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found) == (f"tensor '{SECOND}' offset", "192, a hole before it")
    file = tiny_model()
    file.trailing = bytes(5)
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found, error.expected) == ("end of the file", "5 bytes after the last tensor", "none")


def test_well_formed_variations_are_taken(tmp_path):
    plain = inspect(tmp_path, tiny_model())
    last_without_padding = tiny_model()
    last_without_padding.tensors.append(last_without_padding.tensors.pop(1))
    assert inspect(tmp_path, last_without_padding.to_bytes()[:-16])["geometry"] == plain["geometry"]
    for alignment in (8, 4096):
        aligned = tiny_model()
        aligned.alignment = alignment
        aligned.set_key(u32("general.alignment", alignment))
        assert inspect(tmp_path, aligned)["geometry"] == plain["geometry"]


def test_tensors_may_lie_in_another_order_than_their_records(tmp_path):
    file = tiny_model()
    stem = "mimi.encoder_transformer.transformer.layers.0.norm1"
    weight, bias = file.tensor(f"{stem}.weight"), file.tensor(f"{stem}.bias")
    place = file.tensors.index(weight)
    assert file.tensors[place + 1] is bias
    weight_start = sum(len(file.padded(tensor.data)) for tensor in file.tensors[:place])
    weight.offset, bias.offset = weight_start + len(weight.data), weight_start
    assert len(weight.data) == len(bias.data) == 64
    assert inspect(tmp_path, file)["weight_class"] == "f32"
