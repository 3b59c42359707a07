"""DataVersion: the version of a broker's topic table."""

from typing import Any, Final, Self

import msgspec

from rocketmq_remoting.integers import Int64
from rocketmq_remoting.json_decoding import UNREADABLE, decode_json
from rocketmq_remoting.typed import decoder


class DataVersion(msgspec.Struct, frozen=True, gc=False):
    """The version of a topic table; registrations of a broker with equal versions have the same topics.

    `timestamp` is in ms since 1970 by the broker's clock; `state_version` is incremented when a controller elects a
    new master, and 0 without a controller."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def encode(self) -> bytes:
        """`{"counter":1,"stateVersion":0,"timestamp":1700000000000}`"""
        values = (self.counter, self.state_version, self.timestamp)
        return b'{"counter":%d,"stateVersion":%d,"timestamp":%d}' % values

    def encode_4x(self) -> bytes:
        """Return the JSON without `stateVersion`, as brokers of 4.x write it."""
        return b'{"counter":%d,"timestamp":%d}' % (self.counter, self.timestamp)

    def text(self) -> str:
        """`stateVersion:timestamp:counter`"""
        return f"{self.state_version}:{self.timestamp}:{self.counter}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the version that `text()` wrote; ValueError for any other text."""
        state_version, timestamp, counter = text.split(":")
        return cls(int(state_version), int(timestamp), int(counter))


class DataVersionMembers(msgspec.Struct, gc=False, rename="camel"):
    """The members as peers send them: any may be missing or null."""

    counter: Int64 | None = None
    state_version: Int64 | None = None
    timestamp: Int64 | None = None

    def value(self, *, now_ms: int = 0) -> DataVersion:
        """Return the version; a missing timestamp is `now_ms`, so that it differs from any stored version."""
        timestamp = now_ms if self.timestamp is None else self.timestamp
        return DataVersion(self.state_version or 0, timestamp, self.counter or 0)


def decode_data_version(body: bytes) -> DataVersion:
    """Return the version in the body of QUERY_DATA_VERSION or its response; missing members are 0. Raises BodyError."""
    try:
        return _members.decode(body).value()
    except UNREADABLE:
        return decode_json(body, DataVersionMembers).value()


def decode_queried_version(body: bytes) -> DataVersion | None:
    """Return the version in the body of QUERY_DATA_VERSION; None, which equals no version, for null or no body."""
    members: DataVersionMembers | None = decode_json(body, _OPTIONAL) if body else None
    return None if members is None else members.value()


_members: Final[msgspec.json.Decoder[DataVersionMembers]] = decoder(DataVersionMembers)
_OPTIONAL: Final[Any] = DataVersionMembers | None
