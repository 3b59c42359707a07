"""What can go wrong when bytes of a peer are read. Nothing else is ever raised for bad input."""

from typing import Literal

FrameFault = Literal["frame", "header", "too_big"]


class FrameError(ValueError):
    """Bytes that are no frame: the connection has to be closed without an answer.

    `reason` is `too_big` (over the frame limit), `frame` (lengths or serialize type make no sense) or
    `header` (the header cannot be read)."""

    def __init__(self, reason: FrameFault, message: str) -> None:
        super().__init__(message)
        self.reason: FrameFault = reason


class BodyError(ValueError):
    """A body that cannot be read; the message is one line and names the member where there is one."""
