"""Which checks are made, in which order, and on which models."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from codec_core import _ext
from codec_core.convert import convert_model
from codec_core.difference import Difference
from codec_core.errors import CodecError, SettingError, UnavailableError
from codec_core.model import CodecModel, resolve_model_path
from codec_core.processor_cores import usable_cores
from codec_core.synth import write_synthetic
from codec_core.verify.conformance import check_codes, check_sound, check_stages, has_codes, has_sound
from codec_core.verify.invariance import (
    ReferenceStream,
    check_batches,
    check_chunks,
    check_refusals,
    check_reset,
    check_two_sessions,
    check_variant,
)
from codec_core.verify.vectors import PACKAGED, VectorFolder

NUMERICS: Final = ("kyutai", "ggml", "ggml-causal")
FULL_CHECKPOINT_SHA256: Final = "913842471bd2cadcf3ca31dc0d04f70ecae9c40218c9eeaf92db4830539bc91b"
NEEDED_DISK_BYTES: Final = 900_000_000
MOST_THREADS: Final = 4

INVARIANCES: Final = {
    "chunks of any size": check_chunks,
    "batches of any size": check_batches,
    "two sessions in turn": check_two_sessions,
    "reset": check_reset,
    "refused input": check_refusals,
}

Run = Callable[[], Difference | None]


@dataclass(frozen=True)
class Check:
    """One question with a yes or a first difference for an answer."""

    group: str
    name: str
    run: Run


@dataclass(frozen=True)
class CheckResult:
    """The answer."""

    group: str
    name: str
    passed: bool
    seconds: float
    detail: str
    """What went wrong; empty where nothing did."""
    difference: Difference | None = None


class Plan:
    """The checks, and the models they share; a context manager, which removes what it made."""

    def __init__(self, model: str = "default", numerics: str | None = None, vectors: Path | None = None, quick: bool = False):
        """Say what shall be verified.

        Args:
            model: path or name of the model whose invariances are tried; the embedded one also has vectors of its own.
            numerics: ``kyutai``, ``ggml`` or ``ggml-causal``; None: the first two.
            vectors: folder of vectors of the full-size synthetic model; None: the packaged ones.
            quick: without the full-size synthetic model.

        Raises:
            ModelAccessError: no such model. SettingError: no such numerics or vectors.

        """
        if numerics is not None and numerics not in NUMERICS:
            raise SettingError("numerics", numerics, " or ".join(NUMERICS))
        self.path = resolve_model_path(model)
        self.numerics = NUMERICS[:2] if numerics is None else (numerics,)
        self.threads = min(MOST_THREADS, usable_cores())
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._opened: tuple[tuple[Path, str, int], CodecModel] | None = None
        self.checks: list[Check] = []
        if not quick:
            self.checks += self._of_vectors("synthetic model", self._full_path, VectorFolder(vectors or PACKAGED / "full"))
        if self.path == resolve_model_path("default"):
            self.checks += self._of_vectors("default model", lambda: self.path, VectorFolder(PACKAGED / "default"))
        for name in self.numerics:
            self.checks += self._of_invariances(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._opened = None
        if self._folder is not None:
            self._folder.cleanup()

    def _of_vectors(self, model_name: str, path: Callable[[], Path], folder: VectorFolder) -> Iterator[Check]:
        for numerics in self.numerics:
            group = f"{model_name}, {numerics} vectors"
            model = partial(self._open, path, numerics, self.threads)
            for signal, stages in folder.stages(numerics):
                yield Check(group, f"{signal.name}: every stage", partial(_with, model, check_stages, signal, stages))
            for signal in folder.signals:
                if has_codes(signal, numerics):
                    yield Check(group, f"{signal.name}: codes", partial(_with, model, check_codes, signal))
                if has_sound(signal, numerics):
                    yield Check(group, f"{signal.name}: sound", partial(_with, model, check_sound, signal))

    def _of_invariances(self, numerics: str) -> Iterator[Check]:
        group = f"{self.path.stem}, {numerics} invariances"
        stream = cache(lambda: ReferenceStream(self._open(lambda: self.path, numerics, 1)))
        for name, check in INVARIANCES.items():
            yield Check(group, name, partial(_with, stream, check))
        for threads in (2, 3):
            yield Check(group, f"{threads} threads", partial(_with, stream, check_variant, "", threads))
        for isa in _ext.Kernels.usable_isas():
            yield Check(group, f"instruction set {isa}", partial(_with, stream, check_variant, isa, 1))

    def _open(self, path: Callable[[], Path], numerics: str, threads: int) -> CodecModel:
        """Open a model, or return it where it was the last to be opened: two of full size need not be in memory."""
        wanted = path(), numerics, threads
        if self._opened is None or self._opened[0] != wanted:
            self._opened = None
            self._opened = wanted, CodecModel.open(wanted[0], numerics=numerics, threads=threads)
        return self._opened[1]

    def _full_path(self) -> Path:
        """Make the full-size synthetic model, once.

        Raises:
            UnavailableError: no room for it, or its bytes are not those the vectors were made with.

        """
        if self._folder is None:
            free = shutil.disk_usage(tempfile.gettempdir()).free
            if free < NEEDED_DISK_BYTES:
                found, needed = f"{free // 1_000_000} MB free", f"{NEEDED_DISK_BYTES // 1_000_000} MB; TMPDIR names another"
                raise UnavailableError(f"temporary folder {tempfile.gettempdir()}", found, needed)
            self._folder = tempfile.TemporaryDirectory(prefix="mimi-verify-")
        path = Path(self._folder.name) / "full.gguf"
        if not path.exists():
            checkpoint = path.with_suffix(".safetensors")
            write_synthetic(checkpoint, "full", force=True)
            report = convert_model(checkpoint, path)
            checkpoint.unlink()
            if report.source_sha256 != FULL_CHECKPOINT_SHA256:
                path.unlink()
                raise UnavailableError("synthetic checkpoint", f"SHA-256 {report.source_sha256}", FULL_CHECKPOINT_SHA256)
        return path


def _with(subject: Callable[[], Any], check: Callable[..., Difference | None], *arguments: object) -> Difference | None:
    """Make a check on what is only then opened."""
    return check(subject(), *arguments)


def run_checks(plan: Plan, started: Callable[[Check], None] = lambda _check: None) -> Iterator[CheckResult]:
    """Make the checks in order, and take each from the plan; what a check raises is its result.

    Args:
        plan: an entered plan.
        started: called before each check.

    """
    # A check that is done lets go of its model.
    while plan.checks:
        check = plan.checks.pop(0)
        started(check)
        begin = time.perf_counter()
        difference, detail = None, ""
        try:
            difference = check.run()
            detail = "" if difference is None else str(difference)
        except CodecError as error:
            detail = f"{error.code}: {error}"
        yield CheckResult(check.group, check.name, not detail, time.perf_counter() - begin, detail, difference)
