"""The recorded frames of tests/golden, as requests with their replies."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rocketmq_remoting.command import Command, decode

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("ns-*.jsonl"))
"""What was said to name servers."""
TO_BROKERS = sorted(path.stem for path in FOLDER.glob("broker-*.jsonl"))
"""What clients said to brokers."""
ALL = NAMES + TO_BROKERS


class Recorded(NamedTuple):
    """One frame; `request` is what a reply answers. `peer` is the address that sent it, or got the reply."""

    frame: bytes
    header: dict[str, object]
    type: str
    command: Command
    request: Command | None
    peer: str


@cache
def recorded(name: str) -> tuple[Recorded, ...]:
    """All frames of one file, in order."""
    frames = []
    requests: dict[tuple[int, int], Command] = {}
    for text in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        line = json.loads(text)
        frame = bytes.fromhex(line["hex"])
        command = decode(frame[4:])
        key = (line["conn"], line["header"]["opaque"])
        if not command.is_response:
            requests[key] = command
        request = requests[key] if command.is_response else None
        frames.append(Recorded(frame, line["header"], line["type"], command, request, line["peer"]))
    return tuple(frames)


def requests(code: int) -> list[Command]:
    """All recorded requests of that code."""
    return [r.command for name in ALL for r in recorded(name) if r.request is None and r.command.code == code]


def replies(code: int) -> list[Command]:
    """All recorded replies to requests of that code."""
    return [r.command for name in ALL for r in recorded(name) if r.request and r.request.code == code]
