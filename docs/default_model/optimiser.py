"""Muon for matrices and flattened conv kernels, Adam for the rest; and the average of weights that is exported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

LEAST_SIDE = 8
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 4


def _outputs_first(parameter: Tensor, values: Tensor) -> Tensor:
    """Turn the kernel of a transposed conv, whose inputs come first; undoes itself."""
    return values.transpose(0, 1) if getattr(parameter, "inputs_first", False) else values


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return the matrix with its singular values brought near 1: [rows, columns] -> the same."""
    first, second, third = NEWTON_SCHULZ
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.t() if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.t()
        x = first * x + (second * square + third * square @ square) @ x
    return x.t() if tall else x


class Muon(torch.optim.Optimizer):
    """Steps of equal size in every direction of a matrix; Adam where a group says ``muon=False``."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # noqa: ARG002 - the signature of torch
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            move = self._move_matrix if group["muon"] else self._move_other
            for parameter in group["params"]:
                if parameter.grad is not None:
                    move(parameter, self.state[parameter], group["lr"])

    def _move_matrix(self, parameter: Tensor, state: dict[str, Any], rate: float) -> None:
        momentum = state.setdefault("momentum", torch.zeros_like(parameter))
        momentum.lerp_(parameter.grad, 0.05)
        direction = _outputs_first(parameter, parameter.grad.lerp(momentum, 0.95))
        move = orthogonalised(direction.reshape(direction.shape[0], -1)).reshape(direction.shape)
        size = max(1.0, direction.shape[0] ** 2 / direction.numel()) ** 0.5
        parameter.add_(_outputs_first(parameter, move), alpha=-rate * size)

    def _move_other(self, parameter: Tensor, state: dict[str, Any], rate: float) -> None:
        if not state:
            state.update(mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter), steps=0)
        state["steps"] += 1
        state["mean"].lerp_(parameter.grad, 0.1)
        state["square"].mul_(0.97).addcmul_(parameter.grad, parameter.grad, value=0.03)
        scale = (state["square"] / (1 - 0.97 ** state["steps"])).sqrt() + 1e-8
        parameter.addcdiv_(state["mean"], scale, value=-rate / (1 - 0.9 ** state["steps"]))


def groups_of(modules: Iterable[nn.Module], matrix_rate: float, other_rate: float) -> list[dict[str, Any]]:
    """Return two groups of the parameters that are trained, each with its highest learning rate as ``base``."""
    matrices, others = [], []
    for module in modules:
        for layer in module.modules():
            if isinstance(layer, nn.ConvTranspose1d):
                layer.weight.inputs_first = layer.groups == 1
        for parameter in module.parameters():
            if parameter.requires_grad:
                (matrices if _is_matrix(parameter) else others).append(parameter)
    return [
        {"params": matrices, "muon": True, "base": matrix_rate, "lr": 0.0},
        {"params": others, "muon": False, "base": other_rate, "lr": 0.0},
    ]


def _is_matrix(parameter: Tensor) -> bool:
    if parameter.dim() < 2 or parameter.shape[0] == 1 or (parameter.dim() == 3 and parameter.shape[1] == 1):
        return False
    return min(parameter.shape[0], parameter[0].numel()) >= LEAST_SIDE


class Average:
    """Exponential average of a module's values, quick at first."""

    def __init__(self, module: nn.Module, decay: float = 0.998) -> None:
        self.decay, self.steps = decay, 0
        self.values = {name: value.detach().clone() for name, value in module.state_dict().items()}

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the present values."""
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        for name, value in module.state_dict().items():
            # Codebooks are averages already.
            is_codebook = name.endswith(("codebooks", "usage"))
            self.values[name].lerp_(value, 1.0 if is_codebook else 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        """Return what goes on later."""
        return {"steps": self.steps, "values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.steps, self.values = state["steps"], state["values"]
