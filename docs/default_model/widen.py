"""Makes a decoder wider without changing what it computes, so that training goes on from what was learned.

    python widen.py mimi-mini.safetensors wide.safetensors --filters 24

Each new channel copies an old one, and what reads a channel that has copies shares its weight among them; a little noise makes
the copies differ, or they would learn the same for ever.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from checkpoint import load, save
from codec import Codec, ResidualUnit
from torch import Tensor, nn


def copied(old: int, new: int) -> Tensor:
    """Return for each of ``new`` channels the old one it copies; every old one is there at least once."""
    return torch.arange(new) % old


def _widened(weight: Tensor, outputs: Tensor | None, inputs: Tensor | None, noise: float) -> Tensor:
    """Weight [outputs, inputs, kernel] on copied channels."""
    if outputs is not None:
        weight = weight[outputs]
    if inputs is not None:
        counts = torch.bincount(inputs)
        weight = weight[:, inputs] / counts[inputs][None, :, None]
        weight = weight * (1 + noise * _cancelling(inputs)[None, :, None])
    return weight


def _cancelling(inputs: Tensor) -> Tensor:
    """Noise that sums to nothing over the copies of one channel, so that their sum stays what it was."""
    values = torch.randn(len(inputs))
    means = torch.zeros(int(inputs.max()) + 1).index_add_(0, inputs, values) / torch.bincount(inputs)
    return values - means[inputs]


@torch.no_grad()
def widen_decoder(codec: Codec, filters: int, noise: float = 0.3) -> Codec:
    """Return a codec whose decoder has ``filters``, at least as many as before, and the same sound."""
    wide = Codec(replace(codec.sizes, decoder_filters=filters))
    state = {name: value for name, value in codec.state_dict().items() if not name.startswith("decoder.model")}
    wide.load_state_dict(state, strict=False)
    inputs: Tensor | None = None
    for old, new in zip(codec.decoder.model, wide.decoder.model, strict=True):
        if isinstance(old, ResidualUnit):
            hidden = _widen_conv(old.block[1].conv.conv, new.block[1].conv.conv, inputs, noise)
            _widen_conv(old.block[3].conv.conv, new.block[3].conv.conv, hidden, noise, outputs=inputs)
        elif hasattr(old, "convtr"):
            inputs = _widen_transposed(old.convtr.convtr, new.convtr.convtr, inputs, noise)
        elif hasattr(old, "conv"):
            inputs = _widen_conv(old.conv.conv, new.conv.conv, inputs, noise)
    return wide


def _widen_conv(old: nn.Conv1d, new: nn.Conv1d, inputs: Tensor | None, noise: float, outputs: Tensor | None = None) -> Tensor:
    chosen = copied(old.out_channels, new.out_channels) if outputs is None else outputs
    new.weight.copy_(_widened(old.weight, chosen, inputs, noise))
    new.bias.copy_(old.bias[chosen])
    return chosen


def _widen_transposed(old: nn.ConvTranspose1d, new: nn.ConvTranspose1d, inputs: Tensor | None, noise: float) -> Tensor:
    chosen = copied(old.out_channels, new.out_channels)
    new.weight.copy_(_widened(old.weight.transpose(0, 1), chosen, inputs, noise).transpose(0, 1))
    new.bias.copy_(old.bias[chosen])
    return chosen


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--filters", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    torch.manual_seed(settings.seed)
    save(widen_decoder(load(settings.source), settings.filters), settings.destination)


if __name__ == "__main__":
    main()
