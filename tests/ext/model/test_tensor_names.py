"""Names as raw moshi.cpp files store them, and the ways a shape may be written."""

import itertools
import zlib
from dataclasses import replace

import pytest

from codec_core.errors import ModelContractError, ModelFormatError
from tests.ext.weights.gguf_bytes import GgufFile, tiny_model
from tests.ext.weights.refusal import inspect, refused

LONG = "mimi.decoder_transformer.transformer.layers.0.self_attn.in_projs.0.weight"
LONG_ENDINGS = (
    "self_attn.in_projs.0.weight",
    "self_attn.out_projs.0.weight",
    "layer_scale_1.scale",
    "layer_scale_2.scale",
)


def short_form(name: str) -> str:
    crc = zlib.crc32(name.encode())
    return name if len(name) < 64 else "".join(f"{crc >> 8 * byte & 15:x}" for byte in range(8))


def raw_model(layers: int = 2, half: bool = True) -> GgufFile:
    """As the public raw file: no metadata, long names cut to their short form. 8 heads of width 2."""
    file = tiny_model(half, layers)
    file.keys = []
    file.tensors = [replace(tensor, name=short_form(tensor.name)) for tensor in file.tensors]
    return file


def test_published_short_form():
    assert short_form(LONG) == "deaa0000"


def test_raw_file_gets_its_names_back(tmp_path):
    file = raw_model()
    assert sum(len(tensor.name) == 8 for tensor in file.tensors) == 16
    inspected = inspect(tmp_path, file)
    assert [tensor["name"] for tensor in inspected["tensors"]] == [tensor.name for tensor in tiny_model().tensors]
    assert [tensor["stored_name"] for tensor in inspected["tensors"]] == [tensor.name for tensor in file.tensors]
    assert (inspected["weight_class"], inspected["numerics"], inspected["metadata"]) == ("f16", "ggml", {})


def colliding_pair() -> tuple[int, str, str]:
    """The two long names of smallest layer index that share a short form, and how many layers a model with both has."""
    seen: dict[str, str] = {}
    for layer, side, ending in itertools.product(range(128), ("encoder", "decoder"), LONG_ENDINGS):
        name = f"mimi.{side}_transformer.transformer.layers.{layer}.{ending}"
        if short_form(name) in seen:
            return layer + 1, seen[short_form(name)], name
        seen[short_form(name)] = name
    pytest.fail("no two names collide")


def test_collision_is_refused_not_guessed(tmp_path):
    layers, first, second = colliding_pair()
    file = raw_model(layers)
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found) == (f"tensor '{short_form(first)}'", "a second one")
    place = max(i for i, tensor in enumerate(file.tensors) if tensor.name == short_form(first))
    del file.tensors[place]
    error = refused(tmp_path, file, ModelContractError)
    assert error.subject == f"tensor '{short_form(first)}'"
    assert first in error.found
    assert second in error.found


def test_short_form_beside_its_full_name(tmp_path):
    file = tiny_model()
    file.tensors.append(replace(file.tensor(LONG), name=short_form(LONG)))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == ("tensor 'deaa0000'", "a tensor this model has no use for")


def test_missing_long_name_tells_both_forms(tmp_path):
    file = tiny_model()
    file.drop_tensor(LONG)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found, error.expected) == (
        f"tensor '{LONG}'",
        "no such tensor",
        "it or its short form 'deaa0000'",
    )


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("mimi.decoder.model.14.conv.conv.weight", (3, 4)),
        ("mimi.decoder.model.14.conv.conv.bias", (1,)),
        ("mimi.encoder.model.0.conv.conv.bias", (4,)),
        ("mimi.encoder.model.0.conv.conv.bias", (4, 1, 1)),
        ("mimi.encoder_transformer.transformer.layers.0.norm1.weight", (1, 16)),
        ("mimi.quantizer.rvq_first.input_proj.weight", (16, 8)),
        ("mimi.quantizer.rvq_rest.output_proj.weight", (8, 16, 1)),
        ("mimi.encoder.model.0.conv.conv.weight", (7, 1, 4, 1)),
    ],
)
def test_same_shape_written_otherwise(tmp_path, name, dims):
    file = tiny_model()
    file.tensor(name).dims = dims
    assert inspect(tmp_path, file)["geometry"] == inspect(tmp_path, tiny_model())["geometry"]
