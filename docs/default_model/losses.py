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
    """Log-mel distance and spectral convergence at several resolutions."""

    def __init__(self, convergence: float = 0.4) -> None:
        super().__init__()
        self.convergence = convergence
        for window, bands in MEL_BANDS.items():
            self.register_buffer(f"filters{window}", mel_filters(window, bands))
            self.register_buffer(f"window{window}", torch.hann_window(window))

    def _features(self, sound: Tensor, window: int) -> tuple[Tensor, Tensor]:
        spectrum = torch.stft(
            sound, window, window // 4, window=getattr(self, f"window{window}"), return_complex=True, pad_mode="constant"
        )
        power = (spectrum.real.square() + spectrum.imag.square()) / window + 1e-9
        bands = getattr(self, f"filters{window}") @ power
        return torch.log10(bands.clamp(min=1e-7)) * 0.5, (power if window >= LINEAR_FROM else bands).sqrt()

    def forward(self, found: Tensor, expected: Tensor, step: int) -> Tensor:
        """Sounds [batch, samples] -> the mean over the step's two windows."""
        total = found.new_zeros(())
        for window in ROTATION[step % len(ROTATION)]:
            with torch.no_grad():
                levels, magnitudes = self._features(expected, window)
                norm = magnitudes.square().sum((1, 2)).sqrt() + 0.1
            found_levels, found_magnitudes = self._features(found, window)
            error = (found_magnitudes - magnitudes).square().sum((1, 2)).sqrt() / norm
            total = total + (found_levels - levels).abs().mean() + self.convergence * error.mean()
        return total / 2


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
    """Spectral loss, the relative error of the low band, and a trace of the relative error of the waveform."""

    def __init__(self, *cuts_hz: float) -> None:
        super().__init__()
        self.spectral, self.low = SpectralLoss(), LowBand(*cuts_hz)

    def forward(self, found: Tensor, expected: Tensor, step: int) -> tuple[Tensor, dict[str, float]]:
        """Sounds [batch, samples] -> the loss, and its parts for the log."""
        spectral = self.spectral(found, expected, step)
        low = _relative_error(self.low(found), self.low(expected), 0.005)
        wave = _relative_error(found, expected, 0.01)
        parts = {"mel": float(spectral.detach()), "low_band": float(low.detach()), "wave": float(wave.detach())}
        return spectral + 0.3 * low + 0.05 * wave, parts


def _relative_error(found: Tensor, expected: Tensor, floor: float) -> Tensor:
    return ((found - expected).square().mean(1).sqrt() / (expected.square().mean(1).sqrt() + floor)).mean()
