"""Soak: streams that go on and on, every code checked, memory and files watched.

    python tests/bench/soak.py stream [--hours 24] ...            a day of stream in the library, faster than real time
    python tests/bench/soak.py service [--hours 4] [--sessions 4]  paced sessions through a service of its own

``stream`` encodes and decodes one stream. Blocks of it are computed once more by sessions that begin with nothing at the same
absolute position, as far back as a frame can hear; every bit must be the same, of codes, sound and state. Windows of it are
computed a third time, at once, without any cache, in float64, by a program that shares nothing with the engine. ``service``
drives a service as ``load.py`` does. Exit status 1 if anything was wrong or lost, or memory or files grew.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from outcome import tell
from soak_service import soak_service
from soak_stream import soak_stream


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    stream = kinds.add_parser("stream", help="in the library, as fast as it goes")
    stream.add_argument("--hours", type=float, default=24, help="of the stream")
    stream.add_argument("--from-frame", type=int, default=0, help="where the stream begins, having heard nothing")
    stream.add_argument("--block-frames", type=int, default=3_000, help="frames of a block that is computed once more")
    stream.add_argument("--check-every", type=int, default=6, help="blocks of which one is")
    stream.add_argument("--hear-frames", type=int, help="how far back a frame hears; absent, as layers and context say")
    stream.add_argument("--windows", type=int, default=3, help="windows that are computed a third time")
    service = kinds.add_parser("service", help="through a service, in real time")
    service.add_argument("--hours", type=float, default=4)
    service.add_argument("--sessions", type=int, default=4)
    service.add_argument("--ramp", type=float, default=0, help="seconds over which the sessions start")
    service.add_argument("--sample-seconds", type=float, default=10, help="time between two looks at memory and files")
    service.add_argument("--serve-options", default="", help="options for the service, in one text")
    for one in (stream, service):
        one.add_argument("--model", default="default", help="a file or a name")
        one.add_argument("--levels", type=int, default=8)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    result: dict[str, Any] = (soak_stream if arguments.kind == "stream" else soak_service)(arguments)
    return tell(result, as_json=arguments.json)


if __name__ == "__main__":
    sys.exit(main())
