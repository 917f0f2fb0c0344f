from __future__ import annotations

import os
from pathlib import Path

import pytest

from codec_core import processor_cores
from codec_core.processor_cores import usable_cores

FULL = len(os.sched_getaffinity(0))


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a tree of control groups in the place of the system's, of which the process is in ``/above/own``."""
    root = tmp_path / "cgroup"
    (root / "above/own").mkdir(parents=True)
    membership = tmp_path / "membership"
    membership.write_text("0::/above/own\n")
    monkeypatch.setattr(processor_cores, "_CONTROL_GROUPS", root)
    monkeypatch.setattr(processor_cores, "_MEMBERSHIP", membership)
    return root


def test_never_more_than_the_process_may_run_on():
    assert 1 <= usable_cores() <= FULL


def test_a_process_bound_to_one_core_has_one():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(
    ("own", "above", "cores"),
    [
        ("max 100000", "max 100000", FULL),
        ("100000 100000", "max 100000", 1),
        ("max 100000", "100000 100000", 1),
        ("190000 100000", "max 100000", 1),
        ("10000 100000", "max 100000", 1),
        ("12800000 100000", "max 100000", FULL),
    ],
)
def test_the_smallest_limit_of_the_groups_counts(groups: Path, own: str, above: str, cores: int):
    (groups / "above/own/cpu.max").write_text(own + "\n")
    (groups / "above/cpu.max").write_text(above + "\n")
    assert usable_cores() == cores


def test_within_a_container_the_root_is_its_own_group(groups: Path):
    (groups / "above/own").rmdir()
    (groups / "cpu.max").write_text("100000 100000\n")
    assert usable_cores() == 1


@pytest.mark.parametrize(("quota", "cores"), [("-1", FULL), ("100000", 1)])
def test_limits_of_the_first_version_count_too(groups: Path, quota: str, cores: int):
    processor_cores._MEMBERSHIP.write_text("4:memory:/above\n3:cpu,cpuacct:/above\n")
    folder = groups / "cpu/above"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text(quota + "\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores() == cores


@pytest.mark.usefixtures("groups")
def test_without_control_groups_all_cores_are_ours():
    processor_cores._MEMBERSHIP.unlink()
    assert usable_cores() == FULL
