"""The quantiser while it is trained: gradients pass through it, and its codebooks follow what is quantised."""

from __future__ import annotations

import torch
from codec import ACOUSTIC, SEMANTIC, Codec, nearest
from torch import Tensor
from training import UNQUANTISED, share

LEAST_LEVELS = 12
"""Gradients pass from crops with so many levels or more: coarse ones would pull the encoder to a few points."""
CODEBOOK_DECAY = 0.998


class StraightThrough:
    """Quantises latents so that gradients pass, and lets codebooks follow what is quantised."""

    def __init__(self, codec: Codec, processes: int = 1) -> None:
        self.codec, self.processes = codec, processes
        self.seen: list[tuple[str, int, Tensor, Tensor]] = []

    def __call__(self, latents: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
        """Latents [batch, dim, frames], levels [batch] -> the same quantised, and the acoustic half's distance to its codes."""
        batch, _, frames = latents.shape
        used, self.seen = levels.repeat_interleave(frames), []
        total, commitment = latents.new_zeros(()), latents.new_zeros(())
        for name, own in ((SEMANTIC, used.clamp(max=1)), (ACOUSTIC, used - 1)):
            half = self.codec.quantizer[name]
            rows = half.input_proj(latents).transpose(1, 2).reshape(batch * frames, -1)
            chosen, whole = self._choose(name, rows.detach(), own)
            chosen = torch.where((used == UNQUANTISED)[:, None], rows.detach(), chosen)
            if name == ACOUSTIC:
                commitment = (rows - whole).square().sum(1).mean()
            passes = (used >= LEAST_LEVELS) | (used == UNQUANTISED)
            given = torch.where(passes[:, None], rows + (chosen - rows).detach(), chosen)
            if name == ACOUSTIC:
                given = torch.where((used == 1)[:, None], torch.zeros_like(given), given)
            total = total + half.output_proj(given.view(batch, frames, -1).transpose(1, 2))
        return total, commitment

    @torch.no_grad()
    def _choose(self, name: str, rows: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        rest, whole, chosen = rows, torch.zeros_like(rows), torch.zeros_like(rows)
        for level, codebook in enumerate(self.codec.quantizer[name].codebooks):
            index = nearest(rest, codebook)
            self.seen.append((name, level, index, rest))
            rest, whole = rest - codebook[index], whole + codebook[index]
            chosen = torch.where((own > level)[:, None], whole, chosen)
        return chosen, whole

    @torch.no_grad()
    def move_codebooks(self) -> None:
        """Move every codebook a little towards what was quantised with it, here and in the other processes."""
        sums = [torch.zeros_like(self.codec.quantizer[name].codebooks[level]) for name, level, _, _ in self.seen]
        counts = [torch.zeros_like(self.codec.quantizer[name].usage[level]) for name, level, _, _ in self.seen]
        for total, count, (_, _, index, rows) in zip(sums, counts, self.seen, strict=True):
            total.index_add_(0, index, rows)
            count.index_add_(0, index, torch.ones_like(rows[:, 0]))
        share([*sums, *counts], self.processes)
        for total, count, (name, level, _, _) in zip(sums, counts, self.seen, strict=True):
            half = self.codec.quantizer[name]
            codebook, usage = half.codebooks[level], half.usage[level]
            whole = codebook * usage[:, None] * CODEBOOK_DECAY + total
            usage.mul_(CODEBOOK_DECAY).add_(count)
            codebook.copy_(whole / usage.clamp(min=1e-3)[:, None])
