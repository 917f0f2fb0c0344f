"""The codec as PyTorch modules, for training; its parameters bear the names of Kyutai's checkpoint.

Shapes: sound [batch, 1, samples] at 24 kHz; latents [batch, dim, frames] at 12.5 Hz; codes [batch * frames, levels].
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

DECODER_STRIDES = (8, 6, 5, 4)
FRAME_SAMPLES = 1920
SEMANTIC, ACOUSTIC = "rvq_first", "rvq_rest"


@dataclass(frozen=True)
class Sizes:
    """Every size that may differ from one training to the next."""

    encoder_filters: int = 16
    decoder_filters: int = 16
    dim: int = 128
    codebook_dim: int = 96
    entries: int = 1024
    levels: int = 32
    layers: int = 2
    heads: int = 8
    context_steps: int = 250

    def fields(self) -> dict[str, int]:
        """Return the sizes as plain values."""
        return asdict(self)


class _Held(nn.Module):
    """Holds a module under a name, for the names of the checkpoint."""

    def __init__(self, name: str, module: nn.Module) -> None:
        super().__init__()
        self.add_module(name, module)


class CausalConv(nn.Module):
    """A conv that sees no future: padded on the left by kernel less stride."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, bias: bool = True, pad: str = "constant"
    ) -> None:
        super().__init__()
        self.conv = _Held("conv", nn.Conv1d(inputs, outputs, kernel, stride, bias=bias))
        self.padding, self.pad_mode = kernel - stride, pad

    def forward(self, x: Tensor) -> Tensor:
        """[batch, inputs, steps] -> [batch, outputs, steps / stride]."""
        return self.conv.conv(functional.pad(x, (self.padding, 0), mode=self.pad_mode) if self.padding else x)


class CausalConvTranspose(nn.Module):
    """A transposed conv whose last kernel less stride samples, which the next step would add to, are cut off."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, *, groups: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.convtr = _Held("convtr", nn.ConvTranspose1d(inputs, outputs, kernel, stride, groups=groups, bias=bias))
        self.trim = kernel - stride

    def forward(self, x: Tensor) -> Tensor:
        """[batch, inputs, steps] -> [batch, outputs, steps * stride]."""
        y = self.convtr.convtr(x)
        return y[..., : y.shape[-1] - self.trim]


class ResidualUnit(nn.Module):
    """x + conv 1 (ELU (conv 3 (ELU (x)))), half as wide inside."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.ELU(), CausalConv(channels, channels // 2, 3), nn.ELU(), CausalConv(channels // 2, channels, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[batch, channels, steps] -> the same."""
        return x + self.block(x)


def seanet_encoder(filters: int, dim: int) -> nn.Sequential:
    """Return the encoder: [batch, 1, samples] -> [batch, dim, samples / 960]."""
    layers: list[nn.Module] = [CausalConv(1, filters, 7)]
    for stride in reversed(DECODER_STRIDES):
        layers += [ResidualUnit(filters), nn.ELU(), CausalConv(filters, 2 * filters, 2 * stride, stride)]
        filters *= 2
    return nn.Sequential(*layers, nn.ELU(), CausalConv(filters, dim, 3))


def seanet_decoder(filters: int, dim: int) -> nn.Sequential:
    """Return the decoder: [batch, dim, steps] -> [batch, 1, steps * 960]."""
    channels = filters * 2 ** len(DECODER_STRIDES)
    layers: list[nn.Module] = [CausalConv(dim, channels, 7)]
    for stride in DECODER_STRIDES:
        layers += [nn.ELU(), CausalConvTranspose(channels, channels // 2, 2 * stride, stride), ResidualUnit(channels // 2)]
        channels //= 2
    return nn.Sequential(*layers, nn.ELU(), CausalConv(channels, 1, 3))


def rotate(x: Tensor, max_period: float = 10_000.0) -> Tensor:
    """Rotary position embedding of interleaved pairs: [batch, heads, steps, width] -> the same."""
    steps, width = x.shape[-2:]
    frequency = torch.exp(-math.log(max_period) * torch.arange(0, width, 2, device=x.device).float() / width)
    angle = torch.arange(steps, device=x.device).float()[:, None] * frequency[None]
    cosine, sine = angle.cos(), angle.sin()
    real, imaginary = x[..., 0::2], x[..., 1::2]
    return torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1).flatten(-2)


class _Scale(nn.Module):
    def __init__(self, width: int, value: float = 0.05) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), value))


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.out_proj = nn.Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.in_proj_weight)


class TransformerLayer(nn.Module):
    """Norm, causal attention within a context, norm, MLP; both branches scaled channel by channel."""

    def __init__(self, width: int, heads: int, context_steps: int) -> None:
        super().__init__()
        self.heads, self.context_steps = heads, context_steps
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attn = _Attention(width)
        self.linear1, self.linear2 = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)
        self.layer_scale_1, self.layer_scale_2 = _Scale(width), _Scale(width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, steps, width] -> the same."""
        batch, steps, width = x.shape
        projected = functional.linear(self.norm1(x), self.self_attn.in_proj_weight)
        query, key, value = projected.view(batch, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        index = torch.arange(steps, device=x.device)
        distance = index[:, None] - index[None]
        mask = (distance >= 0) & (distance < self.context_steps)
        mixed = functional.scaled_dot_product_attention(rotate(query).to(value), rotate(key).to(value), value, attn_mask=mask)
        x = x + self.layer_scale_1.scale * self.self_attn.out_proj(mixed.transpose(1, 2).reshape(batch, steps, width))
        return x + self.layer_scale_2.scale * self.linear2(functional.gelu(self.linear1(self.norm2(x))))


class Transformer(nn.Module):
    """Layers over steps: [batch, width, steps] -> the same."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        layers = [TransformerLayer(sizes.dim, sizes.heads, sizes.context_steps) for _ in range(sizes.layers)]
        self.transformer = _Held("layers", nn.ModuleList(layers))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, width, steps] -> the same."""
        x = x.transpose(1, 2)
        for layer in self.transformer.layers:
            x = layer(x)
        return x.transpose(1, 2)


class ResidualQuantiser(nn.Module):
    """One half of the split quantiser: own projections, own codebooks."""

    def __init__(self, sizes: Sizes, levels: int) -> None:
        super().__init__()
        self.input_proj = nn.Conv1d(sizes.dim, sizes.codebook_dim, 1, bias=False)
        self.output_proj = nn.Conv1d(sizes.codebook_dim, sizes.dim, 1, bias=False)
        self.register_buffer("codebooks", torch.zeros(levels, sizes.entries, sizes.codebook_dim))
        self.register_buffer("usage", torch.full((levels, sizes.entries), 48.0))

    @torch.no_grad()
    def codes(self, rows: Tensor) -> Tensor:
        """Choose codes level by level: [rows, codebook_dim] -> [rows, levels]."""
        rest, chosen = rows.clone(), []
        for codebook in self.codebooks:
            index = nearest(rest, codebook)
            rest = rest - codebook[index]
            chosen.append(index)
        return torch.stack(chosen, 1)

    def look_up(self, codes: Tensor, used: Tensor) -> Tensor:
        """Sum the first ``used`` [rows] codewords of codes [rows, levels] -> [rows, codebook_dim]."""
        total = torch.zeros(len(codes), self.codebooks.shape[-1], device=codes.device)
        for level, codebook in enumerate(self.codebooks[: codes.shape[1]]):
            total = total + codebook[codes[:, level]] * (used > level).to(codebook)[:, None]
        return total


def nearest(rows: Tensor, codebook: Tensor, piece: int = 8192) -> Tensor:
    """Return the nearest codeword of each row: [rows, width] -> [rows]."""
    norms = (codebook * codebook).sum(1)[None]
    return torch.cat([(norms - 2 * part @ codebook.t()).argmin(1) for part in rows.split(piece)])


class Codec(nn.Module):
    """The whole codec; ``sizes`` says how large."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.encoder = _Held("model", seanet_encoder(sizes.encoder_filters, sizes.dim))
        self.decoder = _Held("model", seanet_decoder(sizes.decoder_filters, sizes.dim))
        self.encoder_transformer, self.decoder_transformer = Transformer(sizes), Transformer(sizes)
        self.downsample = _Held("conv", CausalConv(sizes.dim, sizes.dim, 4, 2, bias=False, pad="replicate"))
        self.upsample = _Held("convtr", CausalConvTranspose(sizes.dim, sizes.dim, 4, 2, groups=sizes.dim, bias=False))
        halves = {SEMANTIC: ResidualQuantiser(sizes, 1), ACOUSTIC: ResidualQuantiser(sizes, sizes.levels - 1)}
        self.quantizer = nn.ModuleDict(halves)

    def encode(self, sound: Tensor) -> Tensor:
        """[batch, 1, samples], whole frames -> latents [batch, dim, frames]."""
        return self.downsample.conv(self.encoder_transformer(self.encoder.model(sound)))

    def decode(self, latents: Tensor) -> Tensor:
        """Latents [batch, dim, frames] -> [batch, 1, samples]."""
        return self.decoder.model(self.decoder_transformer(self.upsample.convtr(latents)))

    @torch.no_grad()
    def codes(self, latents: Tensor) -> Tensor:
        """Latents [batch, dim, frames] -> codes [batch * frames, levels]."""
        return torch.cat([half.codes(_rows(half.input_proj(latents))) for half in self.quantizer.values()], 1)

    def latents(self, codes: Tensor, used: Tensor, batch: int) -> Tensor:
        """Return what the first ``used`` [batch * frames] levels of codes stand for, [batch, dim, frames]."""
        semantic, acoustic = self.quantizer[SEMANTIC], self.quantizer[ACOUSTIC]
        first = semantic.look_up(codes[:, :1], used)
        rest = acoustic.look_up(codes[:, 1:], used - 1)
        return semantic.output_proj(_columns(first, batch)) + acoustic.output_proj(_columns(rest, batch))

    def decoder_side(self) -> nn.ModuleDict:
        """Return what turns latents into sound."""
        return nn.ModuleDict(
            {"decoder": self.decoder, "decoder_transformer": self.decoder_transformer, "upsample": self.upsample}
        )

    def encoder_side(self) -> nn.ModuleDict:
        """Return what turns sound into latents."""
        return nn.ModuleDict(
            {"encoder": self.encoder, "encoder_transformer": self.encoder_transformer, "downsample": self.downsample}
        )


def _rows(x: Tensor) -> Tensor:
    """[batch, width, frames] -> [batch * frames, width]."""
    return x.transpose(1, 2).reshape(-1, x.shape[1])


def _columns(rows: Tensor, batch: int) -> Tensor:
    """[batch * frames, width] -> [batch, width, frames]."""
    return rows.view(batch, -1, rows.shape[-1]).transpose(1, 2)


@torch.no_grad()
def initialise(codec: Codec, gain: float = 1.25) -> None:
    """Start so that variance is kept: fan-in normal weights, residual branches nearly closed, transformers near identity."""
    for module in codec.modules():
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
            weight = module.weight
            transposed_fan = 2 if module.groups > 1 else weight.shape[0] * 2
            fan = weight[0].numel() if isinstance(module, nn.Conv1d) else transposed_fan
            nn.init.normal_(weight, 0, gain / math.sqrt(fan))
            if module.bias is not None:
                module.bias.zero_()
        if isinstance(module, ResidualUnit):
            module.block[3].conv.conv.weight.mul_(0.3)
    codec.decoder.model[-1].conv.conv.weight.mul_(0.05)
    codec.encoder.model[0].conv.conv.weight.mul_(4.0)
    codec.downsample.conv.conv.conv.weight.mul_(0.7)
    up = codec.upsample.convtr.convtr.convtr.weight
    up[:, 0, :2] = 1.0
    up[:, 0, 2:] = torch.randn(len(up), 2) * 0.1
