"""What tells a decoded sound from a recorded one: spectra of several resolutions, the waveform folded by several periods."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

WINDOWS = (1024, 512, 256)
PERIODS = (2, 3, 5, 7, 11)
Judgement = tuple[Tensor, list[Tensor]]
"""Scores, and the maps of every layer before."""


def _conv(inputs: int, outputs: int, kernel: tuple[int, int], stride: tuple[int, int]) -> nn.Module:
    return weight_norm(nn.Conv2d(inputs, outputs, kernel, stride, (kernel[0] // 2, kernel[1] // 2)))


class SpectrumDiscriminator(nn.Module):
    """Judges the complex spectrum; frequency is strided early, so that it costs a third of the decoder."""

    def __init__(self, window: int, channels: int = 24) -> None:
        super().__init__()
        self.samples = window
        self.register_buffer("window", torch.hann_window(window))
        plan = (
            (3, channels, (3, 9), (1, 4)),
            (channels, channels, (3, 7), (1, 2)),
            (channels, 2 * channels, (3, 5), (2, 2)),
            (2 * channels, 2 * channels, (3, 3), (1, 2)),
        )
        self.layers = nn.ModuleList([_conv(*layer) for layer in plan])
        self.score = _conv(2 * channels, 1, (3, 3), (1, 1))

    def forward(self, sound: Tensor) -> Judgement:
        """Sound [batch, samples] -> scores and maps."""
        size = self.samples
        spectrum = torch.stft(sound, size, size // 4, window=self.window, return_complex=True, pad_mode="constant")
        spectrum = spectrum / math.sqrt(size)
        magnitude = (spectrum.real.square() + spectrum.imag.square() + 1e-8).sqrt()
        shrunk = magnitude.pow(-0.6)
        planes = [spectrum.real * shrunk, spectrum.imag * shrunk, magnitude.log() * 0.3 + 0.8]
        return _judge(torch.stack(planes, 1).transpose(2, 3), self.layers, self.score)


class PeriodDiscriminator(nn.Module):
    """Judges the waveform folded into columns of one period."""

    def __init__(self, period: int, channels: int = 16) -> None:
        super().__init__()
        self.period = period
        widths = [1, channels, 2 * channels, 4 * channels, 4 * channels]
        self.layers = nn.ModuleList([_conv(a, b, (5, 1), (3, 1)) for a, b in pairwise(widths)])
        self.score = _conv(widths[-1], 1, (3, 1), (1, 1))

    def forward(self, sound: Tensor) -> Judgement:
        """Sound [batch, samples] -> scores and maps."""
        sound = functional.pad(sound, (0, -sound.shape[-1] % self.period))
        return _judge(sound.view(len(sound), 1, -1, self.period), self.layers, self.score)


def _judge(x: Tensor, layers: nn.ModuleList, score: nn.Module) -> Judgement:
    maps = []
    for layer in layers:
        x = functional.leaky_relu(layer(x), 0.2)
        maps.append(x)
    return score(x), maps


def all_discriminators() -> nn.ModuleList:
    """Return one for every window and period."""
    return nn.ModuleList([*map(SpectrumDiscriminator, WINDOWS), *map(PeriodDiscriminator, PERIODS)])


def discriminator_loss(judges: list[nn.Module], recorded: Tensor, decoded: Tensor) -> Tensor:
    """Hinge loss of the discriminators on sounds [batch, samples]."""
    losses = []
    for judge in judges:
        losses.append(functional.relu(1 - judge(recorded)[0].float()).mean())
        losses.append(functional.relu(1 + judge(decoded)[0].float()).mean())
    return torch.stack(losses).sum() / len(judges)


def adversarial_loss(judges: list[nn.Module], recorded: Tensor, decoded: Tensor, matching: float = 4.0) -> Tensor:
    """Return what the decoder is to lower: being told apart, and differing in the judges' maps."""
    total = decoded.new_zeros(())
    for judge in judges:
        with torch.no_grad():
            wanted = judge(recorded)[1]
        score, maps = judge(decoded)
        near = [
            ((found - expected).abs().mean() / (expected.abs().mean() + 1e-3)).float()
            for found, expected in zip(maps, wanted, strict=True)
        ]
        total = total - score.float().mean() + matching * torch.stack(near).mean()
    return total / len(judges)
