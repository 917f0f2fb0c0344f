"""How many cores this process may keep busy: fewer than the machine has, in most containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return the cores the process may be scheduled on, or fewer where its control group has less processor time; at least 1.

    Part of a core is left out: who is stopped for the rest of every period is late in all of them.
    """
    cores = len(os.sched_getaffinity(0))
    shares = _shares(_CONTROL_GROUPS, _MEMBERSHIP)
    return max(1, min([cores, *(int(share) for share in shares)]))


def _shares(control_groups: Path, membership: Path) -> Iterator[float]:
    """Yield the limits of the process's groups and of those above them, in cores; of both versions of control groups."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        root = control_groups / "cpu" if "cpu" in controllers.split(",") else control_groups
        if controllers and root == control_groups:
            continue
        # Within a container the names are those outside, where nothing is mounted: its own group is then the root.
        own = root.joinpath(*Path(group).parts[1:])
        for folder in (own, *own.parents):
            share = _share(folder)
            if share is not None:
                yield share
            if folder == root:
                break


def _share(folder: Path) -> float | None:
    """Return a group's own limit in cores; ``None`` if it has none."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((folder / name).read_text(encoding="ascii").strip() for name in names)
    except OSError:
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)
