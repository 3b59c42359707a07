"""What a peer may take of an HTTP worker, from the options."""

import enum
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from api.transport.refusal import Refusal
from registry.options.catalogue import Options


class Phase(enum.Enum):
    """What a connection waits for; its members stand in the order in which connections make room for others."""

    IDLE = "its next request"
    CLOSING = "its peer to close it"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    ANSWER = "its peer to read an answer"
    WHOLE = "a thread, which has its whole request"


CLOSING_S: Final = 2.0
"""How long what still comes is read after the last answer: closed before, the peer could lose the answer."""
OPTIONS: Final = {Phase.HEAD: "httpHeadTimeoutMillis", Phase.BODY: "httpBodyTimeoutMillis"}


class Limits(Struct, frozen=True):
    """Times are of a phase as a whole: a byte now and then does not prolong it."""

    connections: int
    watchers: int
    held_bytes: int
    head_bytes: int
    body_bytes: int
    seconds: Mapping[Phase, float]


def limits_of(options: Options) -> Limits:
    """Return the limits that these options set."""
    return Limits(
        connections=options.http_max_connections,
        watchers=options.http_max_watchers,
        held_bytes=options.http_held_bytes,
        head_bytes=options.http_head_max_bytes,
        body_bytes=options.http_body_max_bytes,
        seconds={
            Phase.IDLE: options.http_idle_timeout_millis / 1000,
            Phase.CLOSING: CLOSING_S,
            Phase.HEAD: options.http_head_timeout_millis / 1000,
            Phase.BODY: options.http_body_timeout_millis / 1000,
            Phase.ANSWER: options.http_answer_timeout_millis / 1000,
        },
    )


def overdue(limits: Limits, phase: Phase) -> Refusal:
    """Return the refusal of a request whose rest did not come in time."""
    return Refusal(408, f"over {limits.seconds[phase]:g} s were waited for {phase.value} ({OPTIONS[phase]})")
