"""The errors of decoding. No other exception is raised for bytes of a peer."""

from typing import Literal

FrameFault = Literal["frame", "header", "too_big"]


class FrameError(ValueError):
    """Bytes that are no frame: the connection must be closed without a response.

    `reason` is `too_big` (over the frame limit), `frame` (lengths or serialize type make no sense) or
    `header` (the header cannot be read)."""

    def __init__(self, reason: FrameFault, message: str) -> None:
        super().__init__(message)
        self.reason: FrameFault = reason


class BodyError(ValueError):
    """A body that cannot be decoded; the message is one line and names the member if there is one."""
