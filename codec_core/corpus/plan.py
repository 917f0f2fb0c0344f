"""A corpus before it is encoded: what is to be done, what has been, and how the machine is shared out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from codec_core.corpus.feed import open_reader
from codec_core.corpus.formats import ShardHeader, ShardOutput, room_of
from codec_core.corpus.inputs import Source, fingerprint, list_sources
from codec_core.corpus.lanes import code_dtype
from codec_core.corpus.ledger import SCHEMA_VERSION, CorpusFolder
from codec_core.corpus.manifest import manifest_sources
from codec_core.corpus.settings import SPLIT, CorpusSettings, Shard
from codec_core.corpus.tally import Tally
from codec_core.corpus.tar_members import tar_sources
from codec_core.errors import AudioFileError, SettingError
from codec_core.model import CodecModel
from codec_core.processor_cores import usable_cores
from codec_core.provenance import provenance

DEFAULT_LANES: Final = 16
"""Sources a worker encodes at once: where a larger batch gains little."""


@dataclass(frozen=True)
class CorpusPlan:
    """All of a corpus that is known beforehand."""

    sources: tuple[Source, ...]
    settings: CorpusSettings
    output: ShardOutput
    description: dict[str, Any]
    """Content of ``corpus.json``."""

    def shard(self, number: int) -> Shard:
        """Return one of the shards, by number from 0."""
        first = number * self.settings.shard_size
        return Shard(number, first, self.sources[first : first + self.settings.shard_size])

    def pending(self, folder: CorpusFolder, tally: Tally) -> list[int]:
        """Return the numbers of the shards that the folder lacks; count those it has."""
        lacking = []
        for number in range(self.settings.shards(len(self.sources))):
            entry = folder.entry(number)
            if entry is None:
                lacking.append(number)
            else:
                tally.resume(entry)
        return lacking


def find_sources(inputs: Sequence[str], settings: CorpusSettings, output: Path | None = None) -> list[Source]:
    """List all sources of a corpus; see :func:`~codec_core.corpus.inputs.list_sources`.

    Where channels are split, each file is opened to count them.

    Raises:
        SettingError, AudioFileError: an input that is refused.

    """
    found = list_sources(inputs, manifest_sources, tar_sources, leave_out=output)
    if settings.channels == SPLIT:
        return [one for source in found for one in _channels_of(source)]
    return [replace(source, channel=settings.only_channel) for source in found]


def make_plan(model: CodecModel, sources: Sequence[Source], settings: CorpusSettings) -> CorpusPlan:
    """Put together what is known of a corpus.

    Raises:
        SettingError: the model has fewer levels. UnavailableError: the format needs a package that is not installed.

    """
    info = model.info
    levels = info.default_levels if settings.levels is None else settings.levels
    if not 1 <= levels <= info.levels:
        raise SettingError("levels", str(levels), f"1 .. {info.levels}")
    room_of(settings.form)
    made_by = provenance(model)
    dtype = code_dtype(info.codebook_entries).name
    description = {
        "schema": SCHEMA_VERSION,
        "format": settings.form,
        "levels": levels,
        "code_dtype": dtype,
        "codebook_entries": info.codebook_entries,
        "sample_rate_hz": info.sample_rate_hz,
        "frame_samples": info.frame_samples,
        "channels": settings.channels,
        "shard_size": settings.shard_size,
        "shards": settings.shards(len(sources)),
        "inputs": len(sources),
        "inputs_sha256": fingerprint(sources),
        "provenance": made_by,
    }
    return CorpusPlan(tuple(sources), settings, ShardOutput(settings.form, ShardHeader(levels, dtype, made_by)), description)


def share_out(sources: int, threads: int | None = None) -> tuple[int, int]:
    """Return how many workers there should be, and how many threads each of their steps.

    Many sources keep a worker on each thread busy; of few, each step is spread over several.

    Args:
        sources: how many there are.
        threads: threads in all; None: one for each core this process may use.

    """
    threads = threads or usable_cores()
    workers = max(1, min(threads, sources))
    return workers, threads // workers


def _channels_of(source: Source) -> Iterator[Source]:
    """Yield a source for each channel; one that cannot be opened stays whole, and will be reported."""
    try:
        with open_reader(source) as reader:
            channels = reader.channels
    except AudioFileError:
        yield source
        return
    for channel in range(channels):
        yield replace(source, channel=channel)
