"""The part of a registration body that is the same in each registration of an unchanged topic table.

Brokers send their whole table in each registration. Those of 5.x set `mappingDataVersion` to the current time, so
their bodies differ in that member only."""

import re
from typing import Final

# An atomic group: before Python 3.11.5 a possessive repeat of a group errs (python/cpython#106052).
_VERSION = rb'\{(?>(?:"(?:counter|stateVersion|timestamp)":-?[0-9]{1,19}[,}]){1,3})'
_MAPPING = rb'"mappingDataVersion":' + _VERSION + rb","
_START: Final = re.compile(
    rb'\{"filterServerList":\[[^\]]{0,4096}+\],"topicConfigSerializeWrapper":\{"dataVersion":('
    + _VERSION
    + rb"),"
    rb"(?:" + _MAPPING + rb")?"
)
MAPPING_VERSION: Final = re.compile(_MAPPING)
"""The member that `split_signature` leaves out."""


_LIST_AT: Final = len(b'{"filterServerList":')


def split_signature(body: bytes) -> tuple[bytes, bytes, memoryview] | None:
    """Return the JSON of the data version, the bytes before it, and the bytes after it and mappingDataVersion.

    None for a body that does not begin exactly as Java brokers write it."""
    match = _START.match(body)
    if match is None:
        return None
    return match[1], body[: match.start(1)], memoryview(body)[match.end() :]


def filter_servers_before(front: bytes) -> bytes:
    """Return the JSON of the filter servers in the bytes before the data version, as `split_signature` has them."""
    return front[_LIST_AT : front.index(b"]") + 1]
