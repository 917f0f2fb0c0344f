"""Geometry comes from tensors and metadata; where they disagree, or exceed what a sane file can have, the file is refused."""

import struct
from dataclasses import replace

import pytest

from codec_core.errors import ModelContractError, ModelFormatError
from tests.ext.weights.gguf_bytes import U32, GgufFile, Key, ModelWriter, f32, text, tiny_model, u32
from tests.ext.weights.refusal import Case, assert_refused, inspect, parametrize, refused

KEY = "moshi.mimi."
ENCODER_FIRST = "mimi.encoder.model.0.conv.conv.weight"
LINEAR1 = "mimi.encoder_transformer.transformer.layers.0.linear1.weight"


def put_key(name: str, value: int):
    return lambda file: file.set_key(u32(KEY + name, value))


def put_dims(name: str, *dims: int):
    """Another shape of as many elements."""

    def change(file: GgufFile) -> None:
        file.tensor(name).dims = dims

    return change


def key_case(name: str, value: int, expected: str) -> Case:
    return Case(f"{name} {value}", put_key(name, value), f"key '{KEY}{name}'", str(value), expected)


SETTINGS = [
    key_case("n_q", 0, "1 to 32"),
    key_case("n_q", 33, "1 to 32"),
    key_case("card", 9, "8, as the tensors say"),
    key_case("dim", 512, "16, as the tensors say"),
    key_case("semantic_n_q", 2, "1, as the tensors say"),
    key_case("codebook_dim", 256, "8, as the tensors say"),
    key_case("transformer.num_layers", 3, "2, as the tensors say"),
    key_case("transformer.num_layers", 2**32 - 1, "2, as the tensors say"),
    key_case("transformer.num_heads", 0, "1 to 16"),
    key_case("transformer.num_heads", 3, "heads of an even width that divide 16"),
    key_case("transformer.num_heads", 16, "heads of an even width that divide 16"),
    key_case("transformer.context", 0, "1 to 8192"),
    key_case("transformer.context", 2**31, "1 to 8192"),
    key_case("transformer.max_period", 0, "2 to 1000000000"),
    key_case("sample_rate", 0, "1 to 1000000"),
]

SHAPES = [
    Case(
        "two input channels",
        put_dims(ENCODER_FIRST, 7, 2, 2),
        f"tensor '{ENCODER_FIRST}' dims",
        "(7, 2, 2)",
        "1 input channels",
    ),
    Case(
        "even first kernel",
        put_dims(ENCODER_FIRST, 14, 1, 2),
        f"tensor '{ENCODER_FIRST}' dims",
        "(14, 1, 2)",
        "an odd kernel (first) from 1 to 31",
    ),
    Case(
        "rank of a conv",
        put_dims(ENCODER_FIRST, 7, 1, 2, 2),
        f"tensor '{ENCODER_FIRST}' dims",
        "(7, 1, 2, 2)",
        "at most 3 dimensions",
    ),
    Case(
        "residual kernel",
        put_dims("mimi.encoder.model.1.block.1.conv.conv.weight", 6, 4, 1),
        "tensor 'mimi.encoder.model.1.block.1.conv.conv.weight' dims",
        "(6, 4, 1)",
        "a kernel (first) 3",
    ),
    Case(
        "residual channels",
        put_dims("mimi.encoder.model.1.block.3.conv.conv.weight", 1, 4, 2),
        "tensor 'mimi.encoder.model.1.block.3.conv.conv.weight' dims",
        "(1, 4, 2)",
        "2 input channels",
    ),
    Case(
        "kernel below its stride",
        put_dims("mimi.encoder.model.3.conv.conv.weight", 2, 4, 32),
        "tensor 'mimi.encoder.model.3.conv.conv.weight' dims",
        "(2, 4, 32)",
        "a kernel (first) from 4 to 64",
    ),
    Case(
        "transposed kernel above twice its stride",
        put_dims("mimi.decoder.model.2.convtr.convtr.weight", 32, 16, 64),
        "tensor 'mimi.decoder.model.2.convtr.convtr.weight' dims",
        "(32, 16, 64)",
        "a kernel (first) from 8 to 16",
    ),
    Case(
        "decoder's channels",
        put_dims("mimi.decoder.model.0.conv.conv.weight", 7, 8, 128),
        "tensor 'mimi.decoder.model.0.conv.conv.weight' dims",
        "(7, 8, 128)",
        "16 input channels",
    ),
    Case(
        "two output channels",
        put_dims("mimi.decoder.model.14.conv.conv.weight", 3, 2, 2),
        "tensor 'mimi.decoder.model.14.conv.conv.weight' dims",
        "(3, 2, 2)",
        "4 input channels",
    ),
    Case(
        "downsample's channels",
        put_dims("mimi.downsample.conv.conv.conv.weight", 4, 32, 8),
        "tensor 'mimi.downsample.conv.conv.conv.weight' dims",
        "(4, 32, 8)",
        "16 input channels",
    ),
    Case(
        "upsample not depthwise",
        put_dims("mimi.upsample.convtr.convtr.convtr.weight", 4, 16, 1),
        "tensor 'mimi.upsample.convtr.convtr.convtr.weight' dims",
        "(4, 16, 1)",
        "1 channel per group, 16 groups",
    ),
    Case("linear's input", put_dims(LINEAR1, 32, 16), f"tensor '{LINEAR1}' dims", "(32, 16)", "16 in, at most 65536 out"),
]


@parametrize(SETTINGS)
def test_metadata_out_of_range_or_against_the_tensors(tmp_path, case):
    assert_refused(tmp_path, tiny_model(), case, ModelContractError)


@parametrize(SHAPES)
def test_shape_against_the_topology(tmp_path, case):
    assert_refused(tmp_path, tiny_model(), case, ModelContractError)


@pytest.mark.parametrize("value", [25.0, 0.0, -12.5, float("nan"), float("inf")])
def test_frame_rate_that_does_not_fit(tmp_path, value):
    file = tiny_model()
    file.set_key(f32(f"{KEY}frame_rate", value))
    error = refused(tmp_path, file, ModelContractError)
    assert error.subject == f"key '{KEY}frame_rate'"
    assert error.expected == "12.500000, the sample rate over 1920"


def test_setting_of_another_type(tmp_path):
    for key, found in (
        (Key(f"{KEY}transformer.num_heads", 7, b"\1"), "a bool"),
        (f32(f"{KEY}transformer.num_heads", 2.0), "a real number"),
        (text(f"{KEY}transformer.num_heads", "2"), "a string"),
        (Key(f"{KEY}transformer.num_heads", 9, struct.pack("<IQI", U32, 1, 2)), "an array"),
        (Key(f"{KEY}transformer.num_heads", 5, struct.pack("<i", -2)), "-2"),
    ):
        file = tiny_model()
        file.set_key(key)
        error = refused(tmp_path, file, ModelFormatError)
        assert (error.subject, error.found) == (f"key '{KEY}transformer.num_heads'", found)
        assert error.expected == "an integer that is not negative"


@pytest.mark.parametrize(
    ("name", "cap"),
    [
        ("mimi.quantizer.rvq_rest.vq.layers.64._codebook.embedding", 64),
        ("mimi.encoder_transformer.transformer.layers.256.norm1.weight", 256),
        ("mimi.decoder_transformer.transformer.layers.18446744073709551616.norm1.weight", 256),
    ],
)
def test_index_beyond_what_a_sane_file_has(tmp_path, name, cap):
    file = tiny_model()
    file.tensors.append(replace(file.tensors[0], name=name))
    error = refused(tmp_path, file, ModelContractError)
    assert (error.subject, error.found) == (f"tensor '{name}'", f"an index of {cap} or more")
    assert error.expected == f"at most {cap} of its kind"


def test_whole_geometry_of_the_tiny_model(tmp_path):
    geometry = inspect(tmp_path, tiny_model())["geometry"]
    assert (geometry["sample_rate_hz"], geometry["frame_rate_hz"], geometry["frame_samples"]) == (24000, 12.5, 1920)
    assert geometry["default_levels"] == 8
    assert geometry["rvq"] == {
        "dim": 16,
        "codebook_dim": 8,
        "codebook_entries": 8,
        "semantic_levels": 1,
        "acoustic_levels": 31,
        "levels": 32,
    }
    transformer = {
        "dim": 16,
        "layers": 2,
        "heads": 2,
        "head_dim": 8,
        "mlp_width": 32,
        "context_steps": 8,
        "max_period": 10000.0,
    }
    assert geometry["encoder_transformer"] == transformer
    assert geometry["decoder_transformer"] == transformer
    assert geometry["downsample"] == {"in_channels": 16, "out_channels": 16, "kernel": 4, "stride": 2}
    assert geometry["upsample"] == {"in_channels": 16, "out_channels": 16, "kernel": 4, "stride": 2}


@pytest.mark.parametrize(("side", "channels"), [("encoder", [4, 8, 16, 32]), ("decoder", [32, 16, 8, 4])])
def test_stages_in_the_order_they_run(tmp_path, side, channels):
    seanet = inspect(tmp_path, tiny_model())["geometry"][side]
    strides = [4, 5, 6, 8] if side == "encoder" else [8, 6, 5, 4]
    for stage, width, stride in zip(seanet["stages"], channels, strides, strict=True):
        wide = {"in_channels": width, "out_channels": width // 2, "kernel": 3, "stride": 1}
        assert stage["residual_wide"] == wide
        assert stage["residual_point"] == {"in_channels": width // 2, "out_channels": width, "kernel": 1, "stride": 1}
        narrow, broad = (width, 2 * width) if side == "encoder" else (2 * width, width)
        assert stage["resample"] == {"in_channels": narrow, "out_channels": broad, "kernel": 2 * stride, "stride": stride}
    ends = (seanet["first"], seanet["last"])
    outer = [(1, 4, 7), (64, 16, 3)] if side == "encoder" else [(16, 64, 7), (4, 1, 3)]
    assert [(conv["in_channels"], conv["out_channels"], conv["kernel"]) for conv in ends] == outer


def test_published_values_where_there_is_no_metadata(tmp_path):
    file = tiny_model()
    file.keys = []
    geometry = inspect(tmp_path, file)["geometry"]
    assert (geometry["sample_rate_hz"], geometry["frame_rate_hz"], geometry["default_levels"]) == (24000, 12.5, 8)
    assert geometry["encoder_transformer"]["heads"] == 8
    assert geometry["encoder_transformer"]["context_steps"] == 250
    assert geometry["encoder_transformer"]["max_period"] == 10000


def test_default_levels_are_capped_by_what_the_file_has(tmp_path):
    file = tiny_model()
    file.keys = []
    for level in range(3, 31):
        file.drop_tensor(f"mimi.quantizer.rvq_rest.vq.layers.{level}._codebook.embedding")
    geometry = inspect(tmp_path, file)["geometry"]
    assert (geometry["default_levels"], geometry["rvq"]["levels"]) == (4, 4)


def test_kernels_that_are_not_twice_the_stride(tmp_path):
    file = tiny_model()
    writer = ModelWriter(half=False, seed=1)
    writer.conv("encoder.model.0", 1, (1, 4))
    writer.conv("encoder.model.3", 4, (4, 8))
    writer.transposed_conv("decoder.model.2", 8, (64, 32))
    writer.transposed_conv("decoder.model.5", 7, (32, 16))
    replaced = {tensor.name: tensor for tensor in writer.tensors}
    file.tensors = [replaced.get(tensor.name, tensor) for tensor in file.tensors]
    geometry = inspect(tmp_path, file)["geometry"]
    assert geometry["encoder"]["first"]["kernel"] == 1
    assert geometry["encoder"]["stages"][0]["resample"]["kernel"] == 4
    assert [stage["resample"]["kernel"] for stage in geometry["decoder"]["stages"]] == [8, 7, 10, 8]
