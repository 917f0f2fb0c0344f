"""``config.json``: the constructor's defaults, and every key that is not known or not run, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codec_core.convert.lm_config import LmConfig, checked_config, load_config
from codec_core.convert.lm_metadata import config_metadata
from codec_core.errors import CheckpointError
from codec_core.synth_lm import LM_CONFIGS

LEAST: dict[str, Any] = {"num_layers": 2, "depformer_num_heads": 4, "n_q": 8, "delays": [0] * 9}


def metadata_of(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(config_metadata(LmConfig(checked_config(fields), None, "x")))


def test_the_constructors_defaults() -> None:
    found = metadata_of(LEAST)
    assert {
        key: found[f"moshi.lm.{key}"] for key in ("dim", "num_heads", "card", "text_card", "text_card_out", "dim_feedforward")
    } == {
        "dim": 128,
        "num_heads": 8,
        "card": 1024,
        "text_card": 32000,
        "text_card_out": 32000,
        "dim_feedforward": 512,
    }
    words = ("norm", "positional_embedding", "gating", "depformer.pos_emb", "depformer.gating")
    assert [found[f"moshi.lm.{key}"] for key in words] == ["layer_norm", "sin", "none", "sin", "none"]
    assert not found["moshi.lm.depformer.multi_linear"]
    assert not found["moshi.lm.depformer.weights_per_step"]
    assert "moshi.lm.context" not in found
    assert "moshi.lm.depformer.weights_per_step_schedule" not in found
    assert (found["moshi.lm.depformer.num_layers"], found["moshi.lm.depformer.dim_feedforward"]) == (2, 1024)


def test_what_the_depformer_inherits() -> None:
    found = metadata_of(LEAST | {"kv_repeat": 2, "max_period": 50.0, "gating": "silu", "hidden_scale": 4.125})
    keys = ("kv_repeat", "max_period", "gating", "num_layers", "dim_feedforward")
    assert [found[f"moshi.lm.depformer.{key}"] for key in keys] == [2, 50, "silu", 2, 1056]
    own = metadata_of(LEAST | {"kv_repeat": 2, "depformer_kv_repeat": 1, "depformer_num_layers": 6})
    assert [own[f"moshi.lm.depformer.{key}"] for key in ("kv_repeat", "num_layers")] == [1, 6]
    assert not any(".depformer." in key for key in metadata_of({"num_layers": 2, "dep_q": 0, "n_q": 8, "delays": [0] * 9}))


@pytest.mark.parametrize("model", sorted(LM_CONFIGS))
def test_the_synthetic_configs(model: str) -> None:
    config, found = LM_CONFIGS[model], metadata_of(LM_CONFIGS[model])
    assert found["moshi.lm.delays"].tolist() == config["delays"]
    schedule = config.get("depformer_weights_per_step_schedule") or list(range(config["dep_q"]))
    if config["dep_q"]:
        assert found["moshi.lm.depformer.weights_per_step_schedule"].tolist() == schedule
    assert json.loads(found.get("moshi.lm.conditioners", "{}")) == config.get("conditioners", {})
    scale = found.get("moshi.lm.fuser.cross_attention_pos_emb_scale")
    assert scale == (1.0 if "fuser" in config else None)


def test_the_published_model_without_a_config() -> None:
    found = dict(config_metadata(load_config(Path("moshi-7b"))))
    keys = ("dim", "num_layers", "num_heads", "n_q", "dep_q", "card", "context", "dim_feedforward", "depformer.dim_feedforward")
    assert [found[f"moshi.lm.{key}"] for key in keys] == [4096, 32, 32, 16, 8, 2048, 3000, 16896, 4224]
    assert found["moshi.lm.delays"].tolist() == [0, 0, *[1] * 7, 0, *[1] * 7]


def test_what_is_beside_the_model_itself() -> None:
    found = metadata_of(
        LEAST
        | {"model_type": "personaplex", "mimi_name": "x", "depformer_causal": True, "lora": False, "lora_name": None}
        | {"lm_gen_config": {"temp": 0, "temp_text": 0.5, "top_k": 250, "use_sampling": True, "text_temp": 1}}
        | {
            "stt_config": {"audio_delay_seconds": 0.5},
            "tts_config": {"multistream": True},
            "model_id": {"sig": "ab12", "epoch": 3},
        }
    )
    assert found["moshi.lm.inference.dep_q"] == 4
    assert found["moshi.lm.inference.pre_text_silence_frames"] == found["moshi.lm.inference.post_text_silence_frames"] == 6
    generation = {key.rpartition(".")[2]: value for key, value in found.items() if ".generation." in key}
    assert generation == {"temp": 0.0, "temp_text": 0.5, "top_k": 250, "use_sampling": True}
    assert isinstance(generation["temp"], float)
    keys = ("stt.audio_delay_seconds", "tts.multistream", "model_id.sig", "model_id.epoch")
    assert [found[f"moshi.lm.{key}"] for key in keys] == [0.5, True, "ab12", 3]


LUT = {"type": "lut", "lut": {"dim": 4, "n_bins": 2, "tokenizer": "noop"}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_layrs": 3}, "config.json: key 'num_layrs': found a key nothing is known of"),
    ({"num_layers": None}, "config.json: num_layers: found null, expected a whole number of 1 or more"),
    ({"dim": 0}, "config.json: dim: found 0"),
    ({"dim": 128.5}, r"config.json: dim: found 128.5"),
    ({"dim": True}, "config.json: dim: found true"),
    ({"dim": "128"}, 'config.json: dim: found "128"'),
    ({"n_q": 1 << 40}, "config.json: n_q: found 1099511627776"),
    ({"dep_q": -1}, "config.json: dep_q: found -1, expected a whole number of 0 or more"),
    ({"dep_q": 9}, "config.json: dep_q: found 9, expected at most n_q, 8"),
    ({"delays": [0, 1]}, r"config.json: delays: found \[0, 1\], expected 9 numbers"),
    ({"delays": [0] * 8 + [-1]}, "config.json: delays"),
    ({"delays": 3}, "config.json: delays: found 3, expected an array"),
    ({"depformer_weights_per_step_schedule": [0, 1]}, r"schedule: found \[0, 1\], expected 8 numbers"),
    ({"depformer_num_heads": None}, "config.json: depformer_num_heads: found null"),
    ({"depformer_dim_feedforward": [4, 5]}, r"depformer_dim_feedforward: found \[4, 5\]"),
    ({"hidden_scale": 0}, "config.json: hidden_scale: found 0, expected a number above 0"),
    ({"causal": "yes"}, 'config.json: causal: found "yes", expected true or false'),
    ({"norm": 5}, "config.json: norm: found 5, expected a string"),
    ({"layer_scale": 0.01}, "config.json: layer_scale: found 0.01, expected null"),
    ({"norm_emb": True}, "config.json: norm_emb: found true, expected false"),
    ({"quantize": True}, "config.json: quantize: found true, expected weights in int8: convert the checkpoint in bf16"),
    ({"lora": True}, "config.json: lora: found true, expected LoRA weights: merge them"),
    ({"lora_name": "lora.safetensors"}, "LoRA weights: merge them"),
    ({"lm_gen_config": {"top_p": 1}}, "config.json: lm_gen_config: top_p: found 1, expected no such key"),
    ({"lm_gen_config": {"top_k": 2.5}}, "lm_gen_config: top_k: found 2.5, expected a whole number"),
    ({"lm_gen_config": {"temp": "warm"}}, 'lm_gen_config: temp: found "warm", expected a number'),
    ({"stt_config": {"a": [1]}}, r"stt_config: a: found \[1\]"),
    ({"tts_config": []}, r"config.json: tts_config: found \[\], expected an object"),
    ({"fuser": {"sums": []}}, "config.json: fuser: sums"),
    ({"fuser": {"prepend": ["x"]}}, r'fuser: prepend: found \["x"\]'),
    ({"fuser": {"sum": ["x"]}}, r'fuser: sum: found \["x"\], expected \[\], the conditioners of type lut'),
    ({"conditioners": {"x": LUT}}, r'fuser: sum: found null, expected \["x"\]'),
    ({"conditioners": {"a.b": LUT}}, "expected names of letters, digits"),
    ({"conditioners": {"x": {"type": "text"}}}, 'conditioners: x: type: found "text"'),
    (
        {"conditioners": {"x": {"type": "tensor", "tensor": {"dim": 4, "output_bias": True}}}},
        "x: output_bias: found true, expected false",
    ),
    ({"conditioners": {"x": {"type": "tensor", "tensor": {"dims": 4}}}}, "x: dims: found 4, expected no such key"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[json.dumps(case[0])[:50] for case in REFUSED])
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        metadata_of(LEAST | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "text that is not JSON"),
        (b"[]", "found list, expected a JSON object"),
        (b"\xff{}", "text that is not JSON"),
        (b'{"dim": 1, "dim": 2}', "config.json: key 'dim': found twice"),
        (b"[" * 100_000, "text that is not JSON"),
        (b" " * ((1 << 20) + 1), "found 1048577 bytes"),
    ],
)
def test_files_that_are_no_config(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=message):
        load_config(tmp_path / "config.json")
