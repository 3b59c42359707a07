"""The two forms in which messages are sent: Server-Sent Events without end, or one JSON document (long poll)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

from api.watchers.messages import Chosen, Message
from registry.events.entry import EventId

__all__ = ["LONG_POLL", "SSE", "Form", "FormName"]


class FormName(StrEnum):
    """Values of the label `transport` of the metric `watchers`."""

    SSE = "sse"
    LONG_POLL = "longpoll"


class Form(Protocol):
    """How messages become an answer."""

    name: FormName
    ends: bool
    """Whether the answer ends behind the first messages."""

    def opening(self, position: EventId, retry_ms: int) -> bytes:
        """Return what is sent first: where the watcher begins, and how long it may wait before it comes back."""

    def text(self, message: Message, chosen: Chosen) -> bytes:
        """Return a message with these of its entries."""

    def joined(self, texts: Sequence[bytes], position: EventId | None) -> bytes:
        """Return messages that are sent together; `position` is the one behind them, None where it is not known."""

    def heartbeat(self, position: EventId) -> bytes:
        """Return what is sent where nothing else was for long."""


class _Sse:
    """text/event-stream, as the HTML standard defines it."""

    name = FormName.SSE
    ends = False

    def opening(self, position: EventId, retry_ms: int) -> bytes:
        return b"retry: %d\nid: %s\n\n" % (retry_ms, str(position).encode())

    def text(self, message: Message, chosen: Chosen) -> bytes:
        return message.event(chosen)

    def joined(self, texts: Sequence[bytes], position: EventId | None) -> bytes:
        return b"".join(texts)

    def heartbeat(self, position: EventId) -> bytes:
        """An event without data sets `Last-Event-ID` alone: a reader of little goes on from here, too."""
        return b":\nid: %s\n\n" % str(position).encode()


class _LongPoll:
    """`{"messages":[…],"next":"…"}`"""

    name = FormName.LONG_POLL
    ends = True

    def opening(self, position: EventId, retry_ms: int) -> bytes:
        return b""

    def text(self, message: Message, chosen: Chosen) -> bytes:
        return message.document(chosen)

    def joined(self, texts: Sequence[bytes], position: EventId | None) -> bytes:
        next_one = b"null" if position is None else b'"%s"' % str(position).encode()
        return b'{"messages":[%s],"next":%s}\n' % (b",".join(texts), next_one)

    def heartbeat(self, position: EventId) -> bytes:
        return b""


SSE: Final[Form] = _Sse()
LONG_POLL: Final[Form] = _LongPoll()
