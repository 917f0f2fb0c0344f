"""docs/model_file.md against the code: keys, tensors, types, caps."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from codec_core import _ext
from codec_core.convert import convert_model
from codec_core.synth import write_synthetic

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "model_file.md").read_text()
READER = (ROOT / "ext" / "weights" / "gguf_header.cc").read_text()
GEOMETRY = (ROOT / "ext" / "model" / "geometry.cc").read_text()
CONTRACT = (ROOT / "ext" / "model" / "contract.cc").read_text()
# Written by other tools for their own reading; this engine writes neither.
READ_ONLY_KEYS = {"general.alignment", "split.count"}


def rows(heading: str) -> list[list[str]]:
    """Cells of the first table after a heading or phrase."""
    table = re.search(r"^\|.*?(?=^[^|]|\Z)", PAGE[PAGE.index(heading) :], re.M | re.S)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


@pytest.fixture(scope="module")
def full(full_model_path: Path) -> dict:
    return _ext.inspect_model(str(full_model_path))


@pytest.fixture(scope="module")
def f16(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("f16")
    write_synthetic(folder / "tiny.safetensors", "tiny")
    convert_model(folder / "tiny.safetensors", folder / "tiny.gguf", dtype="f16")
    return _ext.inspect_model(str(folder / "tiny.gguf"))


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("half")
    write_synthetic(folder / "tiny.safetensors", "tiny")
    convert_model(folder / "tiny.safetensors", folder / "tiny.gguf", dtype="f16", codebooks="f16", matrices="f16")
    return _ext.inspect_model(str(folder / "tiny.gguf"))


def test_keys_are_those_that_are_written(full: dict):
    listed = {cells[0].strip("`") for cells in rows("## Metadata")}
    assert listed == set(full["metadata"]) | READ_ONLY_KEYS


def test_keys_are_those_that_are_read():
    listed = {cells[0].strip("`") for cells in rows("## Metadata")}
    read = {f"moshi.mimi.{name}" for name in re.findall(r'(?:setting|require_agreement)\(file, "([\w.]+)"', GEOMETRY)}
    read |= {f"moshi.mimi.{name}" for name in re.findall(r'full_key\("([\w.]+)"\)', GEOMETRY)}
    read |= set(re.findall(r'"((?:general|moshi|split)\.[\w.]+)"', CONTRACT))
    read |= set(re.findall(r'"(general\.\w+)"', READER))
    assert read <= listed
    assert listed - read == {"general.name", "moshi.mimi.source_sha256", "moshi.mimi.converter"}


def alternatives(pattern: str) -> list[str]:
    """Spell out the {a,b} of a name, in the order of the document."""
    parts = [part.split(",") if i % 2 else [part] for i, part in enumerate(re.split(r"\{(.*?)\}", pattern))]
    return ["".join(choice) for choice in itertools.product(*parts)]


def evaluate(term: str, letters: dict[str, int]) -> int:
    """A size of the table: a number, or a product of numbers and letters, halved or not ("2 S", "C/2")."""
    product, _, divisor = term.partition("/")
    sizes = [letters[factor] if factor in letters else int(factor) for factor in product.split()]
    return int(np.prod(sizes)) // int(divisor or 1)


def shapes(text: str, letters: dict[str, list[int]], count: int) -> list[tuple[int, ...]]:
    """The shape of each of a row's tensors. Letters keep the values of the last row that gave them, and take those it gives."""
    letters |= {
        letter: [int(n) for n in re.findall(r"\d+", values)] for letter, values in re.findall(r"([SC]) = ([\d, ]+)", text)
    }
    formula = re.match(r"\((.*?)\)", text)
    assert formula is not None
    terms = formula[1].split(", ")
    if not re.search("[SC]", formula[1]):
        return [tuple(int(term) for term in terms)] * count
    values = [{letter: numbers[index] for letter, numbers in letters.items()} for index in range(count)]
    return [tuple(evaluate(term, values[index]) for term in terms) for index in range(count)]


def listed_tensors() -> dict[str, tuple[tuple[int, ...], str]]:
    """{name with N for numbers that count: (shape, type column)} of every tensor the table names."""
    listed: dict[str, tuple[tuple[int, ...], str]] = {}
    letters: dict[str, list[int]] = {}
    for name, shape, kind in rows("## Tensors"):
        if shape == "as the encoder's":
            continue
        names = alternatives(name.strip("`"))
        listed |= {one: (sizes, kind) for one, sizes in zip(names, shapes(shape, letters, len(names)), strict=True)}
    encoders = {name: entry for name, entry in listed.items() if "encoder_transformer" in name}
    return listed | {name.replace("encoder_", "decoder_"): entry for name, entry in encoders.items()}


def pattern_of(name: str) -> str:
    return re.sub(r"\blayers\.\d+\.", "layers.N.", name)


def dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    """ggml's order without trailing ones."""
    reversed_shape = list(reversed(shape))
    while len(reversed_shape) > 1 and reversed_shape[-1] == 1:
        reversed_shape.pop()
    return tuple(reversed_shape)


def test_tensors_are_those_of_a_model(full: dict):
    biases = re.compile(r"\.(conv\.conv|convtr\.convtr)\.bias$")
    in_file = {pattern_of(tensor["name"]) for tensor in full["tensors"] if not biases.search(tensor["name"])}
    assert set(listed_tensors()) == in_file


def test_every_conv_has_the_bias_that_is_said(full: dict):
    names = {tensor["name"] for tensor in full["tensors"]}
    convs = {name.removesuffix(".weight") for name in names if re.match(r"mimi\.(en|de)coder\.model\..*\.weight$", name)}
    assert {name.removesuffix(".bias") for name in names if re.match(r"mimi\.(en|de)coder\.model\..*\.bias$", name)} == convs


def test_shapes_are_those_of_the_published_model(full: dict):
    listed = listed_tensors()
    for tensor in full["tensors"]:
        if (entry := listed.get(pattern_of(tensor["name"]))) is not None:
            assert dims(tensor["shape"]) == dims(tuple(reversed(entry[0]))), tensor["name"]


def test_types_of_the_classes(full: dict, f16: dict, halves: dict):
    heads = ("conv", "transposed conv", "linear", "codebook")
    columns = {
        cells[0].strip("`"): dict(zip(heads, cells[1:], strict=True)) | {"f32": "f32"} for cells in rows("One class for")
    }
    listed = listed_tensors()
    for inspected in (full, f16, halves):
        types = columns[inspected["weight_class"]]
        for tensor in inspected["tensors"]:
            kind = listed[pattern_of(tensor["name"])][1] if pattern_of(tensor["name"]) in listed else "f32"
            assert tensor["type"] in types[kind].split(" or "), tensor["name"]


def constant(source: str, name: str) -> int:
    match = re.search(rf"\b{name} = ([\d' *]+);", source)
    assert match is not None, name
    product = 1
    for factor in match[1].replace("'", "").split("*"):
        product *= int(factor)
    return product


def test_caps():
    said = {what: int(most.split(",")[0].split()[0]) for what, most in rows("Caps on what") if most[0].isdigit()}
    assert said == {
        "tensors, keys": constant(READER, "count_cap"),
        "elements of an array": constant(READER, "array_cap"),
        "bytes of a key": constant(READER, "key_cap_bytes"),
        "bytes of a string": constant(READER, "string_cap_bytes"),
        "bytes of a tensor's name": constant(READER, "tensor_name_cap_bytes"),
        "dimensions of a tensor": constant(READER, "rank_cap"),
        "channels of a layer": constant(GEOMETRY, "channel_cap"),
        "width of an MLP": constant(GEOMETRY, "mlp_width_cap"),
        "layers of a transformer": constant(GEOMETRY, "layer_cap"),
        "levels of one half of the quantiser": constant(GEOMETRY, "level_cap"),
        "entries of a codebook": constant(GEOMETRY, "codebook_entries_cap"),
        "kernel of a conv without stride": constant(GEOMETRY, "odd_kernel_cap"),
        "kernel of a strided conv": constant(GEOMETRY, "strided_kernel_cap"),
        "context": constant(GEOMETRY, "context_cap_steps"),
    }


def test_values_taken_where_a_file_is_silent():
    said = {cells[0].strip("`").removeprefix("moshi.mimi."): cells[3] for cells in rows("## Metadata")}
    assert int(said["sample_rate"]) == constant(GEOMETRY, "published_sample_rate_hz")
    assert int(said["transformer.num_heads"]) == constant(GEOMETRY, "published_heads")
    assert int(said["transformer.context"]) == constant(GEOMETRY, "published_context_steps")
    assert int(said["transformer.max_period"]) == constant(GEOMETRY, "published_max_period")
    assert int(said["n_q"].split(",")[0]) == constant(GEOMETRY, "published_levels")
