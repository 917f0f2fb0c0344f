"""A client of the service: streams that outlive their connections.

>>> async with Stream("ws://127.0.0.1:8000", StreamSettings(levels=8)) as stream:
...     async for frame in stream.run(chunks):
...         print(frame.sequence, frame.codes)

``docs/client.md`` shows it at work. The part that speaks ``mimi.v1`` (:mod:`codec_core.client.protocol`) knows no sockets;
:mod:`codec_core.client.line` knows nothing else. Of the rest of the library only errors and the scaling of samples are used.
"""

from codec_core.client.blocking import BlockingStream
from codec_core.client.errors import RemoteError
from codec_core.client.messages import Flushed, Frame, Ready
from codec_core.client.observation import Notice, StreamStats
from codec_core.client.received import EndedError
from codec_core.client.settings import LineOptions, StreamSettings
from codec_core.client.stream import Stream

__all__ = [
    "BlockingStream",
    "EndedError",
    "Flushed",
    "Frame",
    "LineOptions",
    "Notice",
    "Ready",
    "RemoteError",
    "Stream",
    "StreamSettings",
    "StreamStats",
]
