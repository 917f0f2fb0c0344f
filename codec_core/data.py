"""Codes of a whole corpus, as ``mimi tokenize`` made them.

::

    import codec_core.data

    corpus = codec_core.data.open("codes/")
    for codes, metadata in corpus:      # int16 [levels, frames], dict
        ...
    mine = corpus.part(worker, workers) # every workers-th shard
"""

from __future__ import annotations

import os

from codec_core.corpus.reader import Corpus

__all__ = ["Corpus", "open"]


def open(path: str | os.PathLike[str]) -> Corpus:  # noqa: A001 - as wave.open and tarfile.open are
    """Open the folder that ``mimi tokenize`` made.

    Raises:
        CodesFileError: it is none, or damaged.

    """
    return Corpus(path)
