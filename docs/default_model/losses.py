"""What a decoded sound is measured by while it is trained."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

RATE_HZ = 24_000
MEL_BANDS = {2048: 160, 1024: 100, 512: 56, 256: 28, 128: 14}
"""Bands by the samples of the window; two windows a step, in turn, so that a step costs less."""
ROTATION = ((2048, 512), (1024, 256), (2048, 128), (1024, 512), (2048, 256), (1024, 128))
LINEAR_FROM = 1024
"""From this window on spectral convergence is of all bins, below of the bands."""
LOUDNESS_EXPONENT = 0.23
"""Of power: Zwicker's law, as in ITU-T P.862."""


def mel_filters(window: int, bands: int) -> Tensor:
    """Return triangles of unit area: [bands, window / 2 + 1]."""
    bins_hz = torch.linspace(0, RATE_HZ / 2, window // 2 + 1)
    mels = torch.linspace(0, 2595 * math.log10(1 + RATE_HZ / 2 / 700), bands + 2)
    edges_hz = 700 * (10 ** (mels / 2595) - 1)
    rows = []
    for low, peak, high in zip(edges_hz, edges_hz[1:], edges_hz[2:], strict=False):
        rows.append(torch.minimum((bins_hz - low) / (peak - low), (high - bins_hz) / (high - peak)).clamp(min=0))
    filters = torch.stack(rows)
    return filters / (filters.sum(1, keepdim=True) + 1e-6)


class SpectralLoss(nn.Module):
    """Log-mel distance, distance of loudness and spectral convergence at several resolutions."""

    def __init__(self, convergence: float = 0.4, loudness: float = 0.5) -> None:
        super().__init__()
        self.convergence, self.loudness = convergence, loudness
        for window, bands in MEL_BANDS.items():
            self.register_buffer(f"filters{window}", mel_filters(window, bands))
            self.register_buffer(f"window{window}", torch.hann_window(window))

    def _features(self, sound: Tensor, window: int) -> tuple[Tensor, Tensor, Tensor]:
        spectrum = torch.stft(
            sound, window, window // 4, window=getattr(self, f"window{window}"), return_complex=True, pad_mode="constant"
        )
        power = (spectrum.real.square() + spectrum.imag.square()) / window + 1e-9
        bands = getattr(self, f"filters{window}") @ power
        audible = bands.clamp(min=1e-7)
        magnitudes = (power if window >= LINEAR_FROM else bands).sqrt()
        return torch.log10(audible) * 0.5, audible**LOUDNESS_EXPONENT, magnitudes

    def forward(self, found: Tensor, expected: Tensor, step: int) -> Tensor:
        """Sounds [batch, samples] -> the mean over the step's two windows."""
        total = found.new_zeros(())
        for window in ROTATION[step % len(ROTATION)]:
            with torch.no_grad():
                levels, loudness, magnitudes = self._features(expected, window)
                norm = magnitudes.square().sum((1, 2)).sqrt() + 0.1
            found_levels, found_loudness, found_magnitudes = self._features(found, window)
            error = (found_magnitudes - magnitudes).square().sum((1, 2)).sqrt() / norm
            louder = (found_loudness - loudness).abs().mean((1, 2)) / (loudness.mean((1, 2)) + 0.02)
            total = total + (found_levels - levels).abs().mean()
            total = total + self.convergence * error.mean() + self.loudness * louder.mean()
        return total / 2


class Intelligibility(nn.Module):
    """One less short-time objective intelligibility (Taal et al. 2011), at 24 kHz and without its search for silent frames.

    Envelopes of fifteen third octaves from 150 Hz, 25.6 ms long and half as far apart, are compared by their correlation over
    384 ms, scaled to the same energy and cut 15 dB above the expected one. Stretches 40 dB below the loudest do not count.
    """

    WINDOW, HOP, SIZE, BANDS, LOWEST_HZ, SEGMENT, SEGMENT_HOP = 614, 307, 1024, 15, 150.0, 30, 5

    def __init__(self) -> None:
        super().__init__()
        bins_hz = torch.linspace(0, RATE_HZ / 2, self.SIZE // 2 + 1)
        centres_hz = self.LOWEST_HZ * 2 ** (torch.arange(self.BANDS) / 3)
        edges = (centres_hz * 2 ** (-1 / 6))[:, None], (centres_hz * 2 ** (1 / 6))[:, None]
        self.register_buffer("bands", ((bins_hz >= edges[0]) & (bins_hz < edges[1])).float())
        self.register_buffer("window", torch.hann_window(self.WINDOW))

    def _segments(self, sound: Tensor) -> Tensor:
        """[batch, samples] -> [batch, bands, segments, frames]."""
        spectrum = torch.stft(sound, self.SIZE, self.HOP, self.WINDOW, self.window, center=False, return_complex=True)
        envelopes = (self.bands @ (spectrum.real.square() + spectrum.imag.square()) + 1e-6).sqrt()
        return envelopes.unfold(-1, self.SEGMENT, self.SEGMENT_HOP)

    def forward(self, found: Tensor, expected: Tensor) -> Tensor:
        """Sounds [batch, samples], at least half a second -> the mean over bands and audible segments."""
        with torch.no_grad():
            wanted = self._segments(expected)
            energy = wanted.square().sum((1, 3))
            counts = (energy > 1e-4 * energy.amax(1, keepdim=True)).float()
            wanted_centred = wanted - wanted.mean(-1, keepdim=True)
            wanted_norm = wanted_centred.norm(dim=-1) + 1e-6
        given = self._segments(found)
        scaled = given * (wanted.norm(dim=-1, keepdim=True) / (given.norm(dim=-1, keepdim=True) + 1e-6))
        scaled = torch.minimum(scaled, wanted * (1 + 10 ** (15 / 20)))
        centred = scaled - scaled.mean(-1, keepdim=True)
        alike = (centred * wanted_centred).sum(-1) / (wanted_norm * (centred.norm(dim=-1) + 1e-6))
        return 1 - (alike.mean(1) * counts).sum() / counts.sum()


class LowBand(nn.Module):
    """The sound below each cut-off, at a tenth of the rate, where pitch and phase are."""

    def __init__(self, *cuts_hz: float) -> None:
        super().__init__()
        taps = torch.arange(-180, 181).float()
        kernels = [torch.sinc(2 * cut / RATE_HZ * taps) * torch.hann_window(363)[1:-1] for cut in cuts_hz]
        self.register_buffer("kernels", torch.stack([kernel / kernel.sum() for kernel in kernels])[:, None])

    def forward(self, sound: Tensor) -> Tensor:
        """[batch, samples] -> [batch * cuts, samples / 10]."""
        return functional.conv1d(sound[:, None], self.kernels, stride=10, padding=180).flatten(0, 1)


class ReconstructionLoss(nn.Module):
    """Spectral loss, what is lost of intelligibility, the relative error of the low band, a trace of that of the waveform."""

    def __init__(self, *cuts_hz: float) -> None:
        super().__init__()
        self.spectral, self.low, self.intelligibility = SpectralLoss(), LowBand(*cuts_hz), Intelligibility()

    def forward(self, found: Tensor, expected: Tensor, step: int) -> tuple[Tensor, dict[str, float]]:
        """Sounds [batch, samples] -> the loss, and its parts for the log."""
        spectral = self.spectral(found, expected, step)
        low = _relative_error(self.low(found), self.low(expected), 0.005)
        wave = _relative_error(found, expected, 0.01)
        lost = self.intelligibility(found, expected)
        named = {"spectral": spectral, "lost": lost, "low_band": low, "wave": wave}
        return spectral + 0.8 * lost + 0.3 * low + 0.05 * wave, {name: float(value.detach()) for name, value in named.items()}


def _relative_error(found: Tensor, expected: Tensor, floor: float) -> Tensor:
    return ((found - expected).square().mean(1).sqrt() / (expected.square().mean(1).sqrt() + floor)).mean()
