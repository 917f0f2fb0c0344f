"""Codebooks by k-means: on analytic latents to begin with, and once more on the latents of a finished encoder.

python quantiser.py DATA mimi-mini.safetensors refitted.safetensors --minutes 30
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from codec import ACOUSTIC, SEMANTIC, Codec, ResidualQuantiser, Sizes, nearest
from torch import Tensor, nn

if TYPE_CHECKING:
    from shards import Crops

SEMANTIC_WIDTH = 24
"""Leading dimensions of the envelope that the semantic level quantises, into latent dimensions of its own."""
WARM_UP_FRAMES = 3


def kmeans(rows: Tensor, codebook: Tensor, rounds: int = 8) -> Tensor:
    """Move codewords to the means of what is nearest to them; those that nothing is nearest to start anew at a random row."""
    codebook = codebook.clone()
    for number in range(rounds):
        index = nearest(rows, codebook)
        counts = torch.bincount(index, minlength=len(codebook)).to(rows)
        sums = torch.zeros_like(codebook).index_add_(0, index, rows)
        codebook[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
        unused = (counts == 0).nonzero().flatten()
        if number < rounds - 1:
            codebook[unused] = rows[torch.randint(len(rows), (len(unused),))]
    return codebook


def _drawn(rows: Tensor, entries: int) -> Tensor:
    return rows[torch.randint(len(rows), (entries,))] if len(rows) < entries else rows[torch.randperm(len(rows))[:entries]]


@torch.no_grad()
def fit(latents: Tensor, sizes: Sizes | None = None) -> nn.ModuleDict:
    """Return both halves of a quantiser of analytic latents [frames, 96]."""
    sizes = sizes or Sizes()
    halves = {SEMANTIC: ResidualQuantiser(sizes, 1), ACOUSTIC: ResidualQuantiser(sizes, sizes.levels - 1)}
    semantic, acoustic = halves.values()
    width, spare = sizes.codebook_dim, slice(sizes.codebook_dim, sizes.codebook_dim + SEMANTIC_WIDTH)
    for half in halves.values():
        half.input_proj.weight.zero_()
        half.output_proj.weight.zero_()
    semantic.input_proj.weight[:SEMANTIC_WIDTH, :SEMANTIC_WIDTH, 0] = torch.eye(SEMANTIC_WIDTH)
    semantic.output_proj.weight[spare, :SEMANTIC_WIDTH, 0] = torch.eye(SEMANTIC_WIDTH)
    acoustic.input_proj.weight[:, :width, 0] = torch.eye(width)
    acoustic.output_proj.weight[:width, :, 0] = torch.eye(width)
    leading = _leading(latents)
    semantic.codebooks[0] = kmeans(leading, _drawn(leading, sizes.entries))
    rest, variance = latents.clone(), latents.var(0).sum()
    for level, codebook in enumerate(acoustic.codebooks):
        codebook.copy_(kmeans(rest, _drawn(rest, sizes.entries)))
        rest = rest - codebook[nearest(rest, codebook)]
        print(f"level {level + 1}: {float(10 * torch.log10(variance / rest.square().sum(1).mean())):.1f} dB", flush=True)
    return nn.ModuleDict(halves)


def _leading(latents: Tensor) -> Tensor:
    return torch.cat([latents[:, :SEMANTIC_WIDTH], torch.zeros_like(latents[:, SEMANTIC_WIDTH:])], 1)


def analytic_codes(halves: nn.ModuleDict, latents: Tensor) -> Tensor:
    """Codes of analytic latents: [frames, 96] -> [frames, levels]."""
    return torch.cat([halves[SEMANTIC].codes(_leading(latents)), halves[ACOUSTIC].codes(latents)], 1)


@torch.no_grad()
def refit_semantic(codec: Codec, crops: Crops, minutes: float, rounds: int = 10) -> float:
    """Fit the semantic codebook again to what the encoder gives on crops; return its SNR on others, in dB."""
    rows, frames = [], 125
    for _ in range(int(minutes * 60 * 12.5 / frames) + 2):
        sound = crops.draw(1, frames, 0.15)[0]
        projected = codec.quantizer[SEMANTIC].input_proj(codec.encode(sound[:, None]))
        rows.append(projected[0, :, WARM_UP_FRAMES:].t())
    held_out, fitted = torch.cat(rows[: len(rows) // 8 + 1]), torch.cat(rows[len(rows) // 8 + 1 :])
    half = codec.quantizer[SEMANTIC]
    half.codebooks[0] = kmeans(fitted, half.codebooks[0], rounds)
    half.usage[0] = torch.bincount(nearest(fitted, half.codebooks[0]), minlength=len(half.usage[0])).float()
    rest = held_out - half.codebooks[0][nearest(held_out, half.codebooks[0])]
    return float(10 * torch.log10(held_out.var(0).sum() / rest.square().sum(1).mean()))


def main() -> None:
    """Run the command."""
    import checkpoint  # noqa: PLC0415 - the functions above are used where there is no safetensors
    from shards import Crops  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    settings = parser.parse_args()
    random.seed(5)
    torch.manual_seed(5)
    codec = checkpoint.load(settings.source).eval()
    snr_db = refit_semantic(codec, Crops(settings.data, torch.device("cpu")), settings.minutes)
    print(f"semantic level: {snr_db:.1f} dB of latents that it was not fitted on")
    checkpoint.save(codec, settings.destination)


if __name__ == "__main__":
    main()
