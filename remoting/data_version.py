"""DataVersion: what a broker calls the state of its topic table."""

from typing import Any, Final, Self

import msgspec

from remoting.integers import Int64
from remoting.json_in import decode_json


class DataVersion(msgspec.Struct, frozen=True, gc=False):
    """Two registrations with equal versions carry the same topics.

    `timestamp` is in ms by the broker's clock; `state_version` is raised by a controller when it elects a new
    master and is 0 otherwise."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def encode(self) -> bytes:
        """`{"counter":1,"stateVersion":0,"timestamp":1700000000000}`"""
        values = (self.counter, self.state_version, self.timestamp)
        return b'{"counter":%d,"stateVersion":%d,"timestamp":%d}' % values

    def encode_4x(self) -> bytes:
        """The same without `stateVersion`, as brokers of 4.x write it."""
        return b'{"counter":%d,"timestamp":%d}' % (self.counter, self.timestamp)

    def text(self) -> str:
        """`stateVersion:timestamp:counter`"""
        return f"{self.state_version}:{self.timestamp}:{self.counter}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The version that `text()` wrote; ValueError for anything else."""
        state_version, timestamp, counter = text.split(":")
        return cls(int(state_version), int(timestamp), int(counter))


class DataVersionMembers(msgspec.Struct, gc=False, rename="camel"):
    """The members as they come in: any may be missing or null."""

    counter: Int64 | None = None
    state_version: Int64 | None = None
    timestamp: Int64 | None = None

    def value(self, *, now_ms: int = 0) -> DataVersion:
        """The version; a missing timestamp is `now_ms`, which makes it differ from any stored one."""
        timestamp = now_ms if self.timestamp is None else self.timestamp
        return DataVersion(self.state_version or 0, timestamp, self.counter or 0)


def decode_data_version(body: bytes) -> DataVersion:
    """Read the body of QUERY_DATA_VERSION or of its answer; members that are missing count as 0."""
    return decode_json(body, DataVersionMembers).value()


def decode_asked_version(body: bytes) -> DataVersion | None:
    """The version in the body of QUERY_DATA_VERSION; None, which no broker has, for a null or no body at all."""
    members: DataVersionMembers | None = decode_json(body, _OPTIONAL) if body else None
    return None if members is None else members.value()


_OPTIONAL: Final[Any] = DataVersionMembers | None
