"""The first look at a fault: the runbook's command, run against the row's service, and what it printed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from faults.places import Place

P = TypeVar("P", bound=Place)
WITHIN_S: Final = 15.0
"""A look has to show the fault within so long."""
PAUSE_S: Final = 0.5
LINES: Final = 4
WIDTH: Final = 200
"""Of the lines that are kept, and of the terminal that `mqns` writes for."""
COMMANDS: Final = Path(sys.executable).parent


class When(Enum):
    """When an operator looks."""

    STANDING = "while it stands"
    OVER = "when it was over"
    """A fault that is over by itself before anyone looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Generic[P]):
    """What the first look has to print: patterns, each of one of its lines, or what gives them once the fault is there.

    `after_s` is how long the fault stands before (or, when it was over, how long that was ago) until it can be seen."""

    shows: Sequence[str] | Callable[[P], Sequence[str]]
    when: When = When.STANDING
    after_s: float = 0.0

    def patterns(self, place: P) -> list[re.Pattern[str]]:
        """Return the patterns."""
        return [re.compile(text) for text in (self.shows(place) if callable(self.shows) else self.shows)]


class Seen(msgspec.Struct, frozen=True):
    """The last run of a look: its exit code, how long it took, and `lines` that show the fault, else the first ones.

    `at_s` is how long after the fault's beginning (or end, by `when`) it had ended."""

    command: str
    when: When
    at_s: float
    took_s: float
    exit_code: int | None
    lines: tuple[str, ...]
    shown: bool


def first_look(look: Look[P], command: str, place: P, since: float) -> Seen:
    """Repeat the command until it shows the fault, for WITHIN_S from `look.after_s` on: then it is stopped, and the
    last one that came to its end is returned, if one did."""
    begin, ended = since + look.after_s, None
    time.sleep(max(begin - time.monotonic(), 0.0))
    while True:
        seen = _run(look, command, place, since, begin + WITHIN_S)
        ended = ended if seen.exit_code is None else seen
        if seen.shown or time.monotonic() + PAUSE_S + seen.took_s > begin + WITHIN_S:
            return ended or seen
        time.sleep(PAUSE_S)


def _run(look: Look[P], command: str, place: P, since: float, until: float) -> Seen:
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["bash", "-c", substituted(command, place)],
            env=_environment(place),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=max(until - began, 0.0),
            check=False,
        )
        code, printed = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        code, printed = None, error.stdout or b""
    ended = time.monotonic()
    lines = printed.decode(errors="replace").splitlines()
    patterns = look.patterns(place)
    telling = [line for line in lines if any(pattern.search(line) for pattern in patterns)]
    shown = code is not None and all(any(map(pattern.search, lines)) for pattern in patterns)
    kept = tuple(line.strip()[:WIDTH] for line in (telling or lines)[:LINES])
    return Seen(command, look.when, ended - since, ended - began, code, kept, shown)


def substituted(command: str, place: Place) -> str:
    """Return the runbook's command with the addresses of the row's service."""
    addresses = place.addresses
    return re.sub("|".join(map(re.escape, addresses)), lambda address: addresses[address[0]], command)


def _environment(place: Place) -> dict[str, str]:
    """Return the variables that the runbook's commands use, with its `mqns` in PATH."""
    path = os.pathsep.join((str(COMMANDS), os.environ["PATH"]))
    return {
        "PATH": path,
        "HOME": str(place.stage.home),
        "COLUMNS": str(WIDTH),
        "MQNS_HTTP": f"http://{place.http}",
        "LOG": str(place.server.process.output),
        **place.variables,
    }


def unseen(seen: Seen) -> Iterator[str]:
    """Yield that the first look did not show the fault, with what it printed instead."""
    if not seen.shown:
        yield f"the first look did not show it ({seen.command}: exit code {seen.exit_code}, {' / '.join(seen.lines)})"
