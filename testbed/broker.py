"""Brokers as values: their requests to register, send heartbeats and unregister.

Bodies are written here with the standard library alone, so that an error of the codec is not repeated in them.
"""

import json
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType
from testbed.connection import V4_8_0, Connection


class Topic(Struct, frozen=True):
    """One topic of a broker's table."""

    name: str
    queues: int = 8
    perm: int = 6
    flag: int = 0

    def members(self) -> dict[str, Any]:
        return {
            "order": False,
            "perm": self.perm,
            "readQueueNums": self.queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": self.name,
            "topicSysFlag": self.flag,
            "writeQueueNums": self.queues,
        }


TA = Topic("TA")
TB = Topic("TB", queues=4)
TC = Topic("TC")


class Broker(Struct, frozen=True):
    """One broker and its registration. `acting` is None for a broker without the field (4.x)."""

    name: str = "broker-a"
    id: int = 0
    addr: str = "127.10.0.1:10911"
    ha: str = "127.10.0.1:10912"
    cluster: str = "c1"
    topics: tuple[Topic, ...] = (TA, TB)
    counter: int = 1
    timestamp: int = 1000
    state_version: int | None = None
    filters: tuple[str, ...] | None = ()
    acting: bool | None = None
    zone: str | None = None
    timeout_ms: int | None = None
    more_wrapper: dict[str, Any] = {}
    """Further members of topicConfigSerializeWrapper."""

    def but(self, **changes: Any) -> "Broker":
        """Return the broker with these fields changed."""
        return msgspec.structs.replace(self, **changes)

    def identity(self) -> dict[str, str]:
        return {
            "brokerName": self.name,
            "brokerAddr": self.addr,
            "clusterName": self.cluster,
            "brokerId": str(self.id),
        }

    def ext(self, body: bytes) -> dict[str, str]:
        """Return the header fields of REGISTER_BROKER for this body."""
        fields = self.identity() | {"haServerAddr": self.ha, "compressed": "false", "bodyCrc32": crc(body)}
        if self.acting is not None:
            fields["enableActingMaster"] = str(self.acting).lower()
        if self.zone is not None:
            fields["__ZONE_NAME"] = self.zone
        if self.timeout_ms is not None:
            fields["heartbeatTimeoutMillis"] = str(self.timeout_ms)
        return fields

    def data_version(self) -> bytes:
        """Return the body of QUERY_DATA_VERSION."""
        state = {} if self.state_version is None else {"stateVersion": self.state_version}
        return as_json({"counter": self.counter, "timestamp": self.timestamp} | state)

    def wrapper(self) -> dict[str, Any]:
        return {
            "dataVersion": json.loads(self.data_version()),
            "topicConfigTable": {topic.name: topic.members() for topic in self.topics},
        } | self.more_wrapper

    def body(self) -> bytes:
        filters = None if self.filters is None else list(self.filters)
        return as_json({"filterServerList": filters, "topicConfigSerializeWrapper": self.wrapper()})

    def register(
        self,
        over: Connection,
        body: bytes | None = None,
        *,
        version: int = V4_8_0,
        serialize_type: SerializeType = SerializeType.JSON,
        ext: dict[str, str | None] | None = None,
    ) -> Command:
        """Register; `body` instead of its own, `ext` fields instead of its own (None: left out)."""
        body = self.body() if body is None else body
        fields = {key: text for key, text in (self.ext(body) | (ext or {})).items() if text is not None}
        return over.ask(
            RequestCode.REGISTER_BROKER, fields, body, version=version, serialize_type=serialize_type
        )

    def unregister(self, over: Connection, **ext: str | None) -> Command:
        fields = {key: text for key, text in (self.identity() | ext).items() if text is not None}
        return over.ask(RequestCode.UNREGISTER_BROKER, fields)

    def query(self, over: Connection, **changes: Any) -> Command:
        """Send QUERY_DATA_VERSION with the version of the broker after these changes."""
        other = self.but(**changes)
        return over.ask(RequestCode.QUERY_DATA_VERSION, other.identity(), other.data_version())


def as_json(value: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def crc(body: bytes) -> str:
    """Return bodyCrc32: the CRC-32 without its top bit."""
    return str(zlib.crc32(body) & 0x7FFFFFFF)


A = Broker()
A1 = Broker(id=1, addr="127.10.0.2:10911", ha="127.10.0.2:10912")
B = Broker(name="broker-b", addr="127.10.0.3:10911", ha="127.10.0.3:10912", topics=(TA, TC))
