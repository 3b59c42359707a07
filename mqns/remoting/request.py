"""A request before it becomes a command of a connection."""

import msgspec


class Request(msgspec.Struct, frozen=True):
    """A request code, its ext fields and its body."""

    code: int
    ext: dict[str, str] | None = None
    body: bytes = b""
