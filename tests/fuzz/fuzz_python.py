"""Fuzzes one target with atheris, whose options are libFuzzer's: fuzz_python.py TARGET OPTIONS... CORPUS

``fuzz_python.py TARGET --coverage CORPUS`` runs the corpus once instead and prints, for each file that the target covers, the
lines that were reached and those that there are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from fuzz_targets import ROOT, load


def fuzz(name: str, options: list[str]) -> None:
    import atheris  # noqa: PLC0415 - not needed to measure

    with atheris.instrument_imports(include=["codec_core", "server"]):
        target = load(name)
    atheris.Setup([sys.argv[0], *options], target.one_input)
    atheris.Fuzz()


def measure(name: str, corpus: Path) -> None:
    import coverage  # noqa: PLC0415 - not needed to fuzz

    sources = ["codec_core", "server"]
    watched = coverage.Coverage(data_file=None, source_pkgs=sources, config_file=False, messages=False)
    watched.start()
    target = load(name)
    for path in sorted(corpus.iterdir()):
        target.one_input(path.read_bytes())
    watched.stop()
    for source in covered_sources(target.COVERED):
        _, statements, _, missing, _ = watched.analysis2(str(source[1]))
        print(source[0], len(statements) - len(missing), len(statements))


def covered_sources(patterns: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Each file by its name in the repository, and where it is installed."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT)
            module = ".".join(name.with_suffix("").parts).removesuffix(".__init__")
            spec = importlib.util.find_spec(module)
            assert spec is not None
            assert spec.origin is not None
            yield str(name), Path(spec.origin)


if __name__ == "__main__":
    if sys.argv[2] == "--coverage":
        measure(sys.argv[1], Path(sys.argv[3]))
    else:
        fuzz(sys.argv[1], sys.argv[2:])
