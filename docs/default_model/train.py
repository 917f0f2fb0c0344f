"""The phases of a training, each a run of its own.

    python train.py encoder      --data DATA --run runs/encoder
        onto analytic latents
    python train.py decoder      --data DATA --run runs/decoder
        from quantised analytic latents, beside the encoder
    python train.py join         --data DATA --run runs/joined --start runs/encoder/model.safetensors
        the decoder of runs/decoder put to it
    python train.py joint        --data DATA --run runs/joint --start runs/joined/model.safetensors
    python train.py adversarial  --data DATA --run runs/adversarial --start runs/joint/model.safetensors

`adversarial` leaves encoder and codebooks as they are and trains the decoder from the codes stored in DATA (`shards.py describe
--model`), so that codes keep their meaning and no time goes into the encoder. A run that is ended goes on with the same
command.
"""

from __future__ import annotations

import argparse
import random

import checkpoint
import torch
from codec import Codec, Sizes, initialise
from discriminators import adversarial_loss, all_discriminators, discriminator_loss
from losses import ReconstructionLoss
from optimiser import groups_of
from shards import Crops
from straight_through import StraightThrough
from torch import Tensor, nn
from torch.nn import functional
from training import UNQUANTISED, Run, draw_levels, parse_settings, share

LOW_HZ, JOINT_LOW_HZ = (420.0,), (420.0, 700.0)
ENCODER_RATE = 0.25
ANCHOR, LAST_ANCHOR = 0.3, 0.05
COMMITMENT = 0.0005
JUDGES_ALONE, JUDGES_FADE = 0.06, 0.1
"""Parts of the run in which discriminators learn without a say, and in which their say grows to its full share."""
ADVERSARIAL_SHARE = 0.6


def start(settings: argparse.Namespace) -> Codec:
    """Return the codec to begin with: a checkpoint's, or a new one with the quantiser that was fitted on analytic latents."""
    if settings.start:
        return checkpoint.load(settings.start).to(settings.device)
    codec = Codec(Sizes())
    initialise(codec)
    fitted = torch.load(settings.data / "start.pt", weights_only=False)
    codec.quantizer.load_state_dict(fitted["quantizer"])
    return codec.to(settings.device)


def autocast(settings: argparse.Namespace) -> torch.autocast:
    """Compute convs and products in bfloat16."""
    return torch.autocast(torch.device(settings.device).type, torch.bfloat16)


def latent_weights(crops: Crops, device: str) -> tuple[Tensor, Tensor]:
    """Weights of the latent dimensions [dim], between whitened and plain error, and how far the analytic ones spread [96]."""
    spread = torch.cat([torch.from_numpy(latents).float() for latents in crops.latents.values()]).std(0)
    weights = torch.full((Sizes().dim,), 0.05)
    weights[: len(spread)] = 1 / (spread + 0.3)
    return (weights / weights.mean()).to(device), spread.to(device)


def padded(latents: Tensor, dim: int) -> Tensor:
    """Analytic latents [batch, 96, frames] among all dimensions [batch, dim, frames]."""
    return functional.pad(latents, (0, 0, 0, dim - latents.shape[1]))


def train_encoder(settings: argparse.Namespace) -> None:
    """Regress the encoder onto the analytic latents."""
    codec, crops = start(settings), Crops(settings.data, torch.device(settings.device))
    weights, spread = latent_weights(crops, settings.device)
    if not settings.start:
        with torch.no_grad():
            codec.downsample.conv.conv.conv.weight[: len(spread)].mul_(spread.clamp(max=3.0)[:, None, None])
            codec.downsample.conv.conv.conv.weight[len(spread) :].mul_(0.01)
    side = codec.encoder_side()
    run = Run(settings, codec, side, groups_of([side], settings.matrix_rate, settings.other_rate))
    run.resume()
    while run.goes_on():
        count, frames = run.crops()
        sound, _, latents = crops.draw(count, frames, 0.1)
        with autocast(settings):
            found = codec.encode(sound[:, None])
        error = (found.float() - padded(latents, codec.sizes.dim))[:, :, 1:]
        loss = (error.square() * weights[:, None]).mean()
        loss.backward()
        run.apply_gradients()
        run.finish_step({"loss": float(loss.detach())})
    run.save()


def train_decoder(settings: argparse.Namespace) -> None:
    """Train the decoder like a vocoder, from analytic latents of a random number of levels."""
    codec, crops = start(settings), Crops(settings.data, torch.device(settings.device))
    measure = ReconstructionLoss(*LOW_HZ).to(settings.device)
    side = codec.decoder_side()
    run = Run(settings, codec, side, groups_of([side], settings.matrix_rate, settings.other_rate))
    run.resume()
    while run.goes_on():
        count, frames = run.crops()
        sound, codes, latents = crops.draw(count, frames)
        levels = draw_levels(count, codec.sizes.levels, unquantised=latents is not None).to(codes.device)
        with torch.no_grad():
            given = codec.latents(codes, levels.repeat_interleave(frames), count)
            if latents is not None:
                exact = codec.latents(codes, torch.ones_like(codes[:, 0]), count) + padded(latents, codec.sizes.dim)
                given = torch.where((levels == UNQUANTISED)[:, None, None], exact, given)
        with autocast(settings):
            found = codec.decode(given)
        loss, parts = measure(found.float()[:, 0], sound, run.step)
        loss.backward()
        run.apply_gradients()
        run.finish_step(parts)
    run.save()


def join(settings: argparse.Namespace) -> None:
    """Put the decoder of the run beside the encoder's to it."""
    codec = checkpoint.load(settings.start)
    other = checkpoint.load(settings.start.parents[1] / "decoder" / "model.safetensors")
    codec.decoder_side().load_state_dict(other.decoder_side().state_dict())
    settings.run.mkdir(parents=True, exist_ok=True)
    checkpoint.save(codec, settings.run / "model.safetensors")


def train_joint(settings: argparse.Namespace) -> None:
    """Train everything end to end; an anchor to the analytic latents keeps the encoder in its place."""
    codec, crops = start(settings), Crops(settings.data, torch.device(settings.device))
    measure, quantise = ReconstructionLoss(*JOINT_LOW_HZ).to(settings.device), StraightThrough(codec, settings.processes)
    projections = {name: [half.input_proj, half.output_proj] for name, half in codec.quantizer.items()}
    slow = [codec.encoder_side(), *(both[0] for both in projections.values())]
    quick = [codec.decoder_side(), *(both[1] for both in projections.values())]
    groups = groups_of(slow, settings.matrix_rate * ENCODER_RATE, settings.other_rate * ENCODER_RATE)
    run = Run(settings, codec, codec, [*groups_of(quick, settings.matrix_rate, settings.other_rate), *groups])
    run.resume()
    if crops.latents[crops.names[0]] is None:
        raise SystemExit(
            f"{settings.data} has no analytic latents, without which the encoder runs away: describe it without a model"
        )
    weights = latent_weights(crops, settings.device)[0]
    while run.goes_on():
        count, frames = run.crops()
        sound, _, latents = crops.draw(count, frames)
        levels = draw_levels(count, codec.sizes.levels, unquantised=True).to(sound.device)
        with autocast(settings):
            encoded = codec.encode(sound[:, None])
        quantised, commitment = quantise(encoded.float(), levels)
        with autocast(settings):
            found = codec.decode(quantised)
        loss, parts = measure(found.float()[:, 0], sound, run.step // 4)
        loss = loss + COMMITMENT * commitment
        error = (encoded.float() - padded(latents, codec.sizes.dim))[:, :, 1:].square() * weights[:, None]
        loss = loss + (ANCHOR + (LAST_ANCHOR - ANCHOR) * min(1.0, run.progress * 1.5)) * error.mean()
        loss.backward()
        run.apply_gradients()
        quantise.move_codebooks()
        run.finish_step(parts)
    run.save()


class Judges:
    """The discriminators, trained beside the decoder, and their say in its gradient."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.all = all_discriminators().to(settings.device)
        self.optimiser = torch.optim.Adam(self.all.parameters(), 8e-4, betas=(0.5, 0.9))

    def of_step(self, step: int) -> list[nn.Module]:
        """Return those whose turn it is."""
        count = min(self.settings.judges, len(self.all))
        return [self.all[(step * count + number) % len(self.all)] for number in range(count)]

    def learn(self, judges: list[nn.Module], recorded: Tensor, decoded: Tensor) -> float:
        """Train them on sounds [batch, samples]; return their loss."""
        with autocast(self.settings):
            loss = discriminator_loss(judges, recorded, decoded)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        learned = [parameter.grad for parameter in self.all.parameters() if parameter.grad is not None]
        share(learned, self.settings.processes, mean=True)
        self.optimiser.step()
        return float(loss.detach())

    def gradient(self, judges: list[nn.Module], recorded: Tensor, decoded: Tensor) -> Tensor:
        """Return the gradient of the adversarial loss at the decoded sound, [batch, samples]."""
        self.all.requires_grad_(False)
        with autocast(self.settings):
            loss = adversarial_loss(judges, recorded, decoded)
        (gradient,) = torch.autograd.grad(loss, decoded)
        self.all.requires_grad_(True)
        return gradient


def train_adversarial(settings: argparse.Namespace) -> None:
    """Train the decoder from stored codes, with discriminators once they know a little."""
    codec, crops = start(settings), Crops(settings.data, torch.device(settings.device))
    measure, judges = ReconstructionLoss(*LOW_HZ).to(settings.device), Judges(settings)
    side = codec.decoder_side()
    run = Run(settings, codec, side, groups_of([side], settings.matrix_rate, settings.other_rate))
    run.others = {"judges": judges.all, "judges_optimiser": judges.optimiser}
    run.resume()
    while run.goes_on():
        count, frames = run.crops()
        sound, codes, _ = crops.draw(count, frames)
        used = draw_levels(count, codec.sizes.levels, unquantised=False).to(codes.device).repeat_interleave(frames)
        with torch.no_grad():
            given = codec.latents(codes, used, count)
        with autocast(settings):
            decoded = codec.decode(given)
        decoded = decoded.float()[:, 0]
        apart = decoded.detach().requires_grad_()
        loss, parts = measure(apart, sound, run.step // 4)
        (gradient,) = torch.autograd.grad(loss, apart)
        if run.progress >= settings.judges_from:
            turn = judges.of_step(run.step)
            parts["judges"] = judges.learn(turn, sound, decoded.detach())
            heard = min(1.0, (run.progress - settings.judges_from - JUDGES_ALONE) / JUDGES_FADE)
            if heard > 0:
                against = judges.gradient(turn, sound, apart)
                gradient = gradient + against * (ADVERSARIAL_SHARE * heard * gradient.norm() / (against.norm() + 1e-9))
        decoded.backward(gradient)
        run.apply_gradients()
        run.finish_step(parts)
    run.save()


PHASES = {
    "encoder": train_encoder,
    "decoder": train_decoder,
    "join": join,
    "joint": train_joint,
    "adversarial": train_adversarial,
}


def main() -> None:
    """Run a phase."""
    settings = parse_settings(tuple(PHASES), (__doc__ or "").split("\n")[0])
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    random.seed(settings.seed + 1000 * settings.rank)
    PHASES[settings.phase](settings)


if __name__ == "__main__":
    main()
