"""What every phase of a training shares: settings, the learning rate, the log, and state that outlives the process."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoint
import numpy as np
import torch
import torch.distributed
from codec import Codec
from optimiser import Average, Muon
from torch import Tensor, nn

CROPS = ((1, 12), (2, 24), (1, 12), (4, 48))
"""By step in turn: what the batch is divided by, and frames of a crop: up to 3.84 s, so that attention sees more than one."""
LEVEL_CHOICES = (32, 32, 32, 16, 16, 24, 8)
WARM_UP_STEPS = 30
CLIP_NORM = 10.0
LOG_EVERY_STEPS = 50
UNQUANTISED = 0


def parse_settings(phases: tuple[str, ...], description: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("phase", choices=phases)
    parser.add_argument("--data", type=Path, required=True, help="folder that shards.py made")
    parser.add_argument("--run", type=Path, required=True, help="folder of this run; one that exists is gone on with")
    parser.add_argument("--start", type=Path, help="checkpoint to begin with; none: from nothing")
    parser.add_argument("--minutes", type=float, default=15.0, help="of computing: processor time, on a GPU wall time")
    parser.add_argument("--batch", type=int, default=8, help="crops of 0.96 s in a step")
    parser.add_argument("--matrix-rate", type=float, default=0.02)
    parser.add_argument("--other-rate", type=float, default=2e-3)
    parser.add_argument("--final-rate", type=float, default=0.1, help="at the end, by the rate at the beginning")
    parser.add_argument("--judges", type=int, default=2, help="discriminators in a step, in turn; 8 are all")
    parser.add_argument("--judges-from", type=float, default=0.0, help="part of the run after which discriminators begin")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="started together, each with its --rank; all share every step")
    parser.add_argument("--rank", type=int, default=0, help="of this process; 0 logs and saves")
    parser.add_argument("--port", type=int, default=29_519, help="on this machine, where the processes meet")
    parser.add_argument("--save-seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    if settings.processes > 1:
        address = f"tcp://127.0.0.1:{settings.port}"
        torch.distributed.init_process_group("gloo", address, rank=settings.rank, world_size=settings.processes)
    return settings


@torch.no_grad()
def share(tensors: list[Tensor], processes: int, *, mean: bool = False) -> None:
    """Put in place of each tensor the sum, or the mean, of what all processes have of it."""
    if processes == 1:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    torch.distributed.all_reduce(flat)
    if mean:
        flat /= processes
    start = 0
    for tensor in tensors:
        tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def draw_levels(count: int, most: int, *, unquantised: bool) -> Tensor:
    """Draw a number of levels for each crop, [count]; 0, where it is allowed, means not quantised at all."""
    choices = [*LEVEL_CHOICES, *([UNQUANTISED] if unquantised else [])]
    drawn = [random.choice([*choices, random.randint(4, 32), random.randint(1, 12)]) for _ in range(count)]  # noqa: S311
    return torch.tensor([min(levels, most) for levels in drawn])


class Run:
    """One phase under way: ``while run.goes_on(): ...; run.finish_step(losses)``."""

    def __init__(self, settings: argparse.Namespace, codec: Codec, trained: nn.Module, groups: list[dict[str, Any]]) -> None:
        self.settings, self.codec = settings, codec
        self.optimiser, self.average = Muon(groups), Average(trained)
        self.trained, self.step, self.progress = trained, 0, 0.0
        self.others: dict[str, Any] = {}
        """More that has a state: discriminators, their optimiser."""
        alone_on_processor = settings.device == "cpu" and settings.processes == 1
        self._clock: Callable[[], float] = time.process_time if alone_on_processor else time.monotonic
        self._spent = 0.0
        self._started = self._saved = self._clock()
        self._losses: list[dict[str, float]] = []
        settings.run.mkdir(parents=True, exist_ok=True)

    @property
    def _state_path(self) -> Path:
        return self.settings.run / "state.pt"

    def resume(self) -> None:
        """Go on with the run's state, if there is one."""
        if not self._state_path.exists():
            return
        state = torch.load(self._state_path, map_location=self.settings.device, weights_only=False)
        self.codec.load_state_dict(state["codec"])
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.step, self._spent = state["step"], state["spent"]
        # Other crops than those of the beginning.
        random.seed(f"{self.settings.seed} {self.step} {self.settings.rank}")
        print(f"goes on at step {self.step}, {self._spent / 60:.1f} minutes done", flush=True)

    def _parts(self) -> dict[str, Any]:
        return {"optimiser": self.optimiser, "average": self.average, **self.others}

    def goes_on(self) -> bool:
        """Set the learning rate of the next step; False once the time is up."""
        spent = torch.tensor([self._spent + self._clock() - self._started])
        share([spent], self.settings.processes, mean=True)
        self.progress = float(spent) / (self.settings.minutes * 60)
        if self.progress >= 1:
            return False
        cosine = 0.5 * (1 + math.cos(math.pi * self.progress))
        rate = self.settings.final_rate + (1 - self.settings.final_rate) * cosine
        for group in self.optimiser.param_groups:
            group["lr"] = group["base"] * rate * min(1.0, (self.step + 1) / WARM_UP_STEPS)
        return True

    def crops(self) -> tuple[int, int]:
        """Return how many crops the next step has, and their frames."""
        divisor, frames = CROPS[self.step % len(CROPS)]
        return max(1, self.settings.batch // divisor), frames

    def apply_gradients(self) -> None:
        """Move the weights by the gradients, and the average after them."""
        parameters = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        share([parameter.grad for parameter in parameters if parameter.grad is not None], self.settings.processes, mean=True)
        nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.average.update(self.trained)

    def finish_step(self, losses: dict[str, float]) -> None:
        """Log and save, now and then."""
        self.step += 1
        if self.settings.rank > 0:
            return
        self._losses.append(losses)
        if self.step % LOG_EVERY_STEPS == 0:
            found = {name: [entry[name] for entry in self._losses if name in entry] for name in losses}
            means = {name: round(float(np.mean(values)), 4) for name, values in found.items()}
            entry = {"step": self.step, "minutes": round(self.progress * self.settings.minutes, 2), **means}
            self._losses = []
            with (self.settings.run / "log.jsonl").open("a") as file:
                file.write(json.dumps(entry) + "\n")
            print(json.dumps(entry), flush=True)
        if self._clock() - self._saved > self.settings.save_seconds:
            self.save()

    def save(self) -> None:
        """Write the state to go on with, and the averaged model as a checkpoint; each appears whole or not at all."""
        if self.settings.rank > 0:
            return
        now = self._clock()
        self._spent, self._started, self._saved = self._spent + now - self._started, now, now
        state = {name: part.state_dict() for name, part in self._parts().items()}
        state |= {"codec": self.codec.state_dict(), "step": self.step, "spent": self._spent}
        temporary = self._state_path.with_suffix(".new")
        torch.save(state, temporary)
        os.replace(temporary, self._state_path)  # noqa: PTH105 - the same for both files
        present = {name: value.clone() for name, value in self.trained.state_dict().items()}
        self.trained.load_state_dict(self.average.values)
        temporary = self.settings.run / "model.new"
        checkpoint.save(self.codec, temporary)
        self.trained.load_state_dict(present)
        os.replace(temporary, self.settings.run / "model.safetensors")  # noqa: PTH105
