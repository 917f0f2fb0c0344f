"""Names of language models: those of every synthetic one, what each becomes, and shortened ones."""

from __future__ import annotations

import pytest

from codec_core.convert.lm_names import in_order, long_names, published_name, restored_name
from codec_core.errors import CheckpointError
from codec_core.synth_lm import LM_CONFIGS, lm_arrays
from tests.lm_sources import is_kept_f32, short_name

LONG = "lm.condition_provider.conditioners.speaker_wavs.output_proj.weight"


@pytest.mark.parametrize("model", sorted(LM_CONFIGS))
def test_every_published_name_is_known(model: str) -> None:
    split = lm_arrays(model, split=True)
    for name, array in lm_arrays(model).items():
        published = published_name(name)
        assert published.is_vector == (array.ndim != 2)
        if published.fused:
            assert f"{published.name}.0.weight" in split
        else:
            assert published.name == name
        assert is_kept_f32(name) >= published.is_vector
    assert all(not published_name(name).fused for name in split)


@pytest.mark.parametrize(
    "name", ["transformer.layers.3.self_attn.in_proj_weight", "transformer.layers.3.self_attn.in_proj.weight"]
)
def test_both_names_of_a_fused_input(name: str) -> None:
    published = published_name(name)
    assert (published.name, published.fused) == ("transformer.layers.3.self_attn.in_projs", "in")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("emb.weight", "a name no rule knows"),
        ("emb.1.weight2", "a name no rule knows"),
        ("depformer.layers.0.norm_cross.weight", "a name no rule knows"),
        ("text_linear.bias", "a name no rule knows"),
        ("text_linear.weight_scb", "int8"),
        ("transformer.layers.0.gating.linear_in.lora_B.weight", "LoRA"),
    ],
)
def test_other_names(name: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        published_name(name)


def test_the_order_is_that_of_a_step() -> None:
    names = sorted(lm_arrays("a", split=True), key=in_order)
    firsts = ["emb.0", "emb.7", "text_emb", "transformer.layers.0", "transformer.layers.3", "out_norm", "text_linear"]
    firsts += [
        "depformer_in.0",
        "depformer_text_emb",
        "depformer_emb.0",
        "depformer.layers.0",
        "depformer.layers.1",
        "linears.3",
    ]
    places = [min(place for place, name in enumerate(names) if name.startswith(f"{first}.")) for first in firsts]
    assert places == sorted(places)
    assert in_order("emb.9.weight") < in_order("emb.10.weight")


def test_shortened_names_are_restored() -> None:
    candidates = long_names(["speaker_wavs", "cfg"])
    assert candidates == [LONG]
    assert restored_name(short_name(LONG), candidates) == LONG
    assert restored_name("lm.emb.0.weight", candidates) == "lm.emb.0.weight"
    with pytest.raises(CheckpointError, match="tensor 'deaa0000': found the short form of no name"):
        restored_name("deaa0000", candidates)


def test_names_that_meet_are_refused() -> None:
    """Only 16 bits of a short form are free: two names of one short form are soon found."""
    seen: dict[str, str] = {}
    for number in range(100_000):
        (first, second) = long_names([f"{'speaker' * 4}_{number}"])[:2]
        for name in (first, second):
            other = seen.setdefault(short_name(name), name)
            if other != name:
                with pytest.raises(CheckpointError, match=r"the short form of both 'lm\.condition_provider") as caught:
                    restored_name(short_name(name), [other, name])
                assert name[:119] in str(caught.value)
                return
    pytest.fail("no two names met")


@pytest.mark.parametrize("number", ["9" * 5_000, "\u00b2", "\u0663"])
def test_numbers_that_are_none_have_a_place_in_the_order_all_the_same(number: str) -> None:
    known, odd = "condition_provider.conditioners.a.embed.weight", f"condition_provider.conditioners.{number}.embed.weight"
    assert published_name(odd).name == odd
    assert sorted([odd, known], key=in_order) == sorted([odd, known])
