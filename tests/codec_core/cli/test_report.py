from __future__ import annotations

import pytest

from codec_core.cli.report import REMEDIES, error_line, human_bytes, print_warning, progress_bar
from codec_core.errors import CheckpointError, InternalError, error_classes


def test_error_lines() -> None:
    assert error_line(CheckpointError("a\nb", "x\x1b[0m", "y")) == "error[checkpoint]: a b: found x [0m, expected y"
    assert error_line(InternalError("x")) == "error[internal]: x (please report this as a bug)"


def test_every_remedy_belongs_to_an_error() -> None:
    assert REMEDIES.keys() <= error_classes().keys()


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (23_059_136, "23.1 MB"), (5e9, "5.0 GB")]
)
def test_sizes(size: float, text: str) -> None:
    assert human_bytes(size) == text


def test_warnings_and_progress_leave_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_warning("careful\nnow")
    with progress_bar("working") as progress:
        progress(5, 10)
        progress(12, 10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "warning: careful now\n")
