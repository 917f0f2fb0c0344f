"""The contract of the `mimi` component: every tensor there, of the right shape and type, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from codec_core.errors import ModelContractError, ModelFormatError
from tests.ext.weights.gguf_bytes import BF16, F16, F32, Q4_0, Q8_0, GgufFile, Tensor, text, tiny_model, u32
from tests.ext.weights.refusal import inspect, refused

LAYER = "mimi.encoder_transformer.transformer.layers.1"
CODEC_FILE = "the codec's own file (tensors 'mimi.*'); `mimi convert` makes one from the codec's checkpoint"


def retype(file: GgufFile, name: str, element_type: int, data_bytes: int) -> None:
    place = file.tensors.index(file.tensor(name))
    file.tensors[place] = replace(file.tensors[place], type=element_type, data=bytes(data_bytes))


@pytest.mark.parametrize(("half", "weight_class"), [(False, "f32"), (True, "f16")])
def test_weight_class_comes_from_the_types(tmp_path, half, weight_class):
    file = tiny_model(half)
    inspected = inspect(tmp_path, file)
    assert inspected["weight_class"] == weight_class
    assert inspected["numerics"] == "kyutai"
    assert inspected["name"] == "tiny"
    assert inspected["file_bytes"] == len(file.to_bytes())
    first = inspected["tensors"][0]
    assert first == {
        "name": "mimi.encoder.model.0.conv.conv.weight",
        "stored_name": "mimi.encoder.model.0.conv.conv.weight",
        "type": weight_class,
        "shape": (4, 1, 7),
        "bytes": 56 if half else 112,
    }


def test_each_tensor_is_missed_by_name(tmp_path):
    names = [tensor.name for tensor in tiny_model().tensors]
    for name in names:
        file = tiny_model()
        file.drop_tensor(name)
        if name.endswith("vq.layers.30._codebook.embedding"):
            assert inspect(tmp_path, file)["geometry"]["rvq"]["levels"] == 31
            continue
        error = refused(tmp_path, file, ModelContractError)
        assert (error.subject, error.found) == (f"tensor '{name}'", "no such tensor")


def test_tensor_too_many(tmp_path):
    for name in ("mimi.extra", "mimi.quantizer.rvq_first.vq.layers.0._codebook.cluster_usage", "0123abcd"):
        file = tiny_model()
        file.tensors.append(Tensor(name, (4,), F32, bytes(16)))
        error = refused(tmp_path, file, ModelContractError)
        assert (error.subject, error.found) == (f"tensor '{name}'", "a tensor this model has no use for")
        assert error.expected == f"only the {len(file.tensors) - 1} tensors of its geometry"


@pytest.mark.parametrize(
    ("name", "dims", "expected"),
    [
        (f"{LAYER}.self_attn.in_projs.0.weight", (48, 16), "(16, 48)"),
        (f"{LAYER}.linear1.weight", (32, 16), "(16, 32)"),
        (f"{LAYER}.linear2.weight", (16, 32), "(32, 16)"),
        (f"{LAYER}.norm1.weight", (4, 4), "(16)"),
        (f"{LAYER}.layer_scale_2.scale", (1, 1, 16), "(16)"),
        ("mimi.encoder.model.3.conv.conv.bias", (2, 4), "(8)"),
        ("mimi.quantizer.rvq_first.input_proj.weight", (1, 8, 16), "(16, 8)"),
        ("mimi.quantizer.rvq_rest.vq.layers.3._codebook.embedding", (4, 16), "(8, 8)"),
    ],
)
def test_shape_against_the_geometry(tmp_path, name, dims, expected):
    file = tiny_model()
    file.tensor(name).dims = dims
    error = refused(tmp_path, file, ModelContractError)
    found = "(" + ", ".join(map(str, dims)) + ")"
    assert (error.subject, error.found, error.expected) == (f"tensor '{name}' dims", found, expected)


@pytest.mark.parametrize(
    ("half", "retyped", "found", "expected"),
    [
        (False, ("mimi.encoder.model.3.conv.conv.weight", F16, 2 * 8 * 4 * 8), "f16", "f32"),
        (True, ("mimi.encoder.model.3.conv.conv.weight", F32, 4 * 8 * 4 * 8), "f32", "f16"),
        (True, ("mimi.quantizer.rvq_rest.input_proj.weight", F32, 4 * 8 * 16), "f32", "f16"),
        (False, ("mimi.quantizer.rvq_first.output_proj.weight", F16, 2 * 8 * 16), "f16", "f32"),
        (True, ("mimi.decoder.model.2.convtr.convtr.weight", F16, 2 * 16 * 64 * 32), "f16", "f32"),
        (False, (f"{LAYER}.linear1.weight", F16, 2 * 16 * 32), "f16", "f32"),
        (False, (f"{LAYER}.linear2.weight", Q8_0, 34 * 16), "q8_0", "f32"),
        (False, (f"{LAYER}.linear2.weight", Q4_0, 18 * 16), "q4_0", "f32"),
        (False, (f"{LAYER}.norm1.weight", BF16, 2 * 16), "bf16", "f32"),
        (True, ("mimi.quantizer.rvq_rest.vq.layers.0._codebook.embedding", F16, 2 * 64), "f16", "f32"),
        (False, ("mimi.quantizer.rvq_first.vq.layers.0._codebook.embedding", F16, 2 * 64), "f16", "f32"),
        (True, ("mimi.encoder.model.0.conv.conv.bias", F16, 8), "f16", "f32"),
    ],
)
def test_type_against_its_family(tmp_path, half, retyped, found, expected):
    file = tiny_model(half)
    retype(file, *retyped)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{retyped[0]}' type", found)
    assert error.expected == f"{expected} beside the types of the other tensors"


def test_type_of_a_whole_family_that_no_model_has(tmp_path):
    for name, expected in (
        ("mimi.encoder.model.0.conv.conv.weight", "f32 or f16"),
        ("mimi.encoder_transformer.transformer.layers.0.self_attn.in_projs.0.weight", "f32 or q8_0"),
        ("mimi.upsample.convtr.convtr.convtr.weight", "f32 or f16"),
        ("mimi.encoder_transformer.transformer.layers.0.self_attn.in_projs.0.weight", "f32, f16 or q8_0"),
    ):
        file = tiny_model(half=expected == "f32, f16 or q8_0" or "upsample" in name)
        retype(file, name, BF16, len(file.tensor(name).data) // 2)
        error = refused(tmp_path, file, ModelContractError)
        assert (error.subject, error.found, error.expected) == (f"tensor '{name}' type", "bf16", expected)


HALF_FAMILIES = {
    "codebooks": ("_codebook.embedding",),
    "transposed convs": ("convtr.weight",),
    "projections": ("_projs.0.weight", "linear1.weight", "linear2.weight"),
}


def with_halves(file: GgufFile, *families: str) -> list[str]:
    """Retype the tensors of some families; returns their names."""
    ends = tuple(end for family in families for end in HALF_FAMILIES[family])
    names = [str(tensor.name) for tensor in file.tensors if str(tensor.name).endswith(ends)]
    for name in names:
        retype(file, name, F16, len(file.tensor(name).data) // 2)
    return names


@pytest.mark.parametrize("family", HALF_FAMILIES)
def test_halves_beside_convs_of_halves(tmp_path, family):
    file = tiny_model(half=True)
    names = with_halves(file, family)
    assert inspect(tmp_path, file)["weight_class"] == "f16"
    for name in (names[1], names[3]):
        mixed = tiny_model(half=True)
        with_halves(mixed, family)
        retype(mixed, name, F32, len(mixed.tensor(name).data) * 2)
        error = refused(tmp_path, mixed, ModelContractError)
        assert (error.subject, error.found) == (f"tensor '{name}' type", "f32")
        assert error.expected == "f16 beside the types of the other tensors"


@pytest.mark.parametrize("family", HALF_FAMILIES)
def test_halves_beside_wide_convs(tmp_path, family):
    file = tiny_model()
    with_halves(file, family)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.found, error.expected.split()[0]) == ("f16", "f32")


def test_all_families_of_halves(tmp_path):
    file = tiny_model(half=True)
    assert len(with_halves(file, *HALF_FAMILIES)) == 32 + 5 + 16
    assert inspect(tmp_path, file)["weight_class"] == "f16"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_halves_that_are_not_finite(tmp_path, value):
    for family in HALF_FAMILIES:
        file = tiny_model(half=True)
        name = with_halves(file, family)[-1]
        data = file.tensor(name).data
        file.tensor(name).data = data[:-2] + np.float16(value).tobytes()
        error = refused(tmp_path, file, ModelContractError)
        assert (error.subject, error.expected) == (f"tensor '{name}'", "finite values")


def quantised_model() -> GgufFile:
    """Every projection q8_0; widths are multiples of 32."""
    file = tiny_model(dim=32, codebook=(32, 8))
    for tensor in file.tensors:
        if any(part in tensor.name for part in ("_projs.", "linear1.", "linear2.", "put_proj.")):
            tensor.dims = tuple(dim for dim in tensor.dims if dim != 1)
            tensor.data = bytes(len(tensor.data) // 4 // 32 * 34)
            tensor.type = Q8_0
    return file


def test_quantised_file(tmp_path):
    assert inspect(tmp_path, quantised_model())["weight_class"] == "q8_0"


def test_quantised_rows_of_no_whole_blocks(tmp_path):
    name = f"{LAYER}.linear1.weight"
    file = quantised_model()
    retype(file, name, Q8_0, 34 * 64)
    file.tensor(name).dims = (16, 128)
    error = refused(tmp_path, file, ModelFormatError)
    assert (error.subject, error.found) == (f"tensor '{name}' dims", "rows of 16 elements")


@pytest.mark.parametrize("name", [f"{LAYER}.linear2.weight", "mimi.quantizer.rvq_first.output_proj.weight"])
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
def test_quantised_file_with_a_scale_that_is_not_finite(tmp_path, name, value, shown):
    file = quantised_model()
    tensor = file.tensor(name)
    data = bytearray(tensor.data)
    data[34 * 7 : 34 * 7 + 2] = np.float16(value).tobytes()
    tensor.data = bytes(data)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{name}'", f"a scale of {shown} in block 7")


def test_quantised_conv_is_no_class(tmp_path):
    name = "mimi.encoder.model.12.conv.conv.weight"
    file = quantised_model()
    retype(file, name, Q8_0, 34 * 32 * 64)
    file.tensor(name).dims = (32, 32, 64)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{name}' type", "q8_0")
    assert error.expected == "f32 beside the types of the other tensors"


def test_quantised_file_with_one_projection_left_out(tmp_path):
    name = "mimi.quantizer.rvq_rest.input_proj.weight"
    file = quantised_model()
    retype(file, name, F32, 4 * 32 * 32)
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{name}' type", "f32")
    assert error.expected.startswith("q8_0")


def test_other_architecture_and_component(tmp_path):
    file = tiny_model()
    file.set_key(text("general.architecture", "llama"))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found, error.expected) == ("key 'general.architecture'", "'llama'", "'moshi'")
    for component in ("lm", "voice", ""):
        file = tiny_model()
        file.set_key(text("moshi.component", component))
        error = refused(tmp_path, file, ModelContractError)
        assert (error.subject, error.found) == ("key 'moshi.component'", f"'{component}'")
        assert error.expected == f"'mimi', {CODEC_FILE}"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("lm.text_emb.weight", "Moshi's language model (tensors 'lm.*')"),
        ("voice.embeddings", "a voice prompt (tensors 'voice.*')"),
        ("blk.0.attn_q.weight", "no tensor that starts with 'mimi.'"),
    ],
)
def test_raw_file_of_another_component(tmp_path, name, found):
    error = refused(tmp_path, GgufFile(tensors=[Tensor(name, (8,), F32, bytes(32))]), ModelContractError)
    assert (error.subject, error.found, error.expected) == ("file", found, CODEC_FILE)


def test_file_without_tensors(tmp_path):
    error = refused(tmp_path, GgufFile(), ModelContractError)
    assert (error.subject, error.found) == ("file", "no tensors")


def test_split_file(tmp_path):
    file = tiny_model()
    file.set_key(u32("split.count", 3))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found, error.expected) == (
        "key 'split.count'",
        "one of 3 parts",
        "one whole file: merge the parts first",
    )
    file.set_key(u32("split.count", 0))
    assert inspect(tmp_path, file)["weight_class"] == "f32"


def test_numerics_the_file_asks_for(tmp_path):
    for numerics in ("kyutai", "ggml"):
        file = tiny_model()
        file.set_key(text("moshi.mimi.numerics", numerics))
        assert inspect(tmp_path, file)["numerics"] == numerics
    file.set_key(text("moshi.mimi.numerics", "fast"))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found, error.expected) == ("key 'moshi.mimi.numerics'", "'fast'", "'kyutai' or 'ggml'")


def test_declared_weight_class(tmp_path):
    file = tiny_model(half=True)
    file.set_key(text("moshi.mimi.weight_class", "f16"))
    assert inspect(tmp_path, file)["weight_class"] == "f16"
    file.set_key(text("moshi.mimi.weight_class", "f32"))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == ("key 'moshi.mimi.weight_class'", "'f32'")
    assert error.expected == "'f16', as the tensors' types say"
