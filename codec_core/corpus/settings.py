"""What decides the bytes of a corpus, besides its sources and the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from codec_core.corpus.inputs import Source
from codec_core.errors import SettingError
from codec_core.pcm import MOST_CHANNELS

ShardFormat = Literal["parquet", "webdataset", "npy", "safetensors"]
SHARD_FORMATS: Final[tuple[ShardFormat, ...]] = get_args(ShardFormat)
MOST_SHARD_SOURCES: Final = 10_000
"""Sources a shard may have: what a header of one entry each can hold."""
MIX: Final = "mix"
SPLIT: Final = "split"


@dataclass(frozen=True)
class CorpusSettings:
    """How a corpus is encoded and kept."""

    levels: int | None = None
    """RVQ levels, 1 .. the model's; None: what the model gives unless told otherwise."""
    form: ShardFormat = "parquet"
    """Format of the shards."""
    shard_size: int = 1000
    """Sources to a shard, 1 .. :data:`MOST_SHARD_SOURCES`; those that fail leave no row."""
    channels: str = MIX
    """``mix``: the mean of all; ``split``: each channel a row of its own; or the number of one channel, from 0."""

    def __post_init__(self) -> None:
        if self.form not in SHARD_FORMATS:
            raise SettingError("format", repr(self.form), " or ".join(SHARD_FORMATS))
        if not 1 <= self.shard_size <= MOST_SHARD_SOURCES:
            raise SettingError("shard size", str(self.shard_size), f"1 .. {MOST_SHARD_SOURCES}")
        number = self.channels if self.channels.isascii() and self.channels.isdigit() else None
        if self.channels not in (MIX, SPLIT) and (number is None or not 0 <= int(number) < MOST_CHANNELS):
            raise SettingError("channels", repr(self.channels), f"{MIX}, {SPLIT} or 0 .. {MOST_CHANNELS - 1}")

    @property
    def only_channel(self) -> int | None:
        """The one channel to take of every source; None where all are mixed or split."""
        return None if self.channels in (MIX, SPLIT) else int(self.channels)

    def shards(self, sources: int) -> int:
        """Return how many shards so many sources make."""
        return -(-sources // self.shard_size)


@dataclass(frozen=True)
class Shard:
    """A run of sources whose rows go into the same files."""

    number: int
    first: int
    """Index of its first source in the whole list."""
    sources: tuple[Source, ...]

    @property
    def stem(self) -> str:
        """Name of its files, less the suffix."""
        return f"shard-{self.number:06d}"
