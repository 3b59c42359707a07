"""What made a change: SQL that several questions share."""

PAIR = ("namespace", "topic", "broker")
CAUSED = "struct<ms: bigint, id: struct<ms: bigint, n: int>, cause: string, actor: string, op: string>"
"""Time, entry of the stream, cause, actor and operation; null where the table has none."""


def caused(ms: str, id: str, cause: str, actor: str = "null", op: str = "null") -> str:
    """A CAUSED of these columns or values."""
    return f"cast(struct({ms}, {id}, {cause}, {actor}, {op}) as {CAUSED})"


BEGAN = caused("from_ms", "from_id", "from_cause", "from_actor", "from_op")
"""The begin of a route version."""
ENDED = caused("to_ms", "to_id", "to_cause", "to_actor")
"""Its end."""


def within(ms: str, from_ms: int, to_ms: int) -> str:
    """Whether it was after `from_ms`, and at `to_ms` at the latest."""
    return f"({ms} > {from_ms:d} and {ms} <= {to_ms:d})"
