"""Registrations as brokers of 5.x repeat them: mappingDataVersion is new each time, and with it bodyCrc32."""

from collections.abc import Iterator

from msgspec.structs import replace

from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from rocketmq_remoting.acl_signature import ACCESS_KEY, SIGNATURE
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, body_crc32, encode_register_broker_body
from rocketmq_remoting.remoting_command import SerializeType
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT

JSON, BINARY = SerializeType.JSON, SerializeType.ROCKETMQ
KINDS = [JSON, BINARY]
ADDRESS = "127.0.0.9:10911"


def ext_of(body: bytes, **more: str) -> dict[str, str]:
    """The header's fields in the order of Java's hash map, those of `more` over them."""
    return {
        "brokerId": "0",
        "bodyCrc32": str(body_crc32(body)),
        "clusterName": "c1",
        "brokerAddr": ADDRESS,
        "haServerAddr": "127.0.0.9:10912",
        "compressed": "false",
        "brokerName": "broker-a",
        "heartbeatTimeoutMillis": "86400000",  # a thousandth of it outlasts any test
    } | more


def body_of(stamp: int = 1, topics: int = 3, counter: int = 1, perm: int = 6) -> bytes:
    """`stamp` is what mappingDataVersion counts."""
    names = [f"T{number}" for number in range(topics)]
    body = RegisterBrokerBody(
        DataVersion(0, 1_700_000_000_000, counter),
        {name: TopicConfig(name, 8, 8, perm) for name in names},
        mapping_data_version=DataVersion(0, 1_700_000_000_000, stamp),
    )
    return encode_register_broker_body(body, version=CURRENT, compressed=False)


def registration(
    body: bytes, opaque: int = 7, kind: SerializeType = JSON, flag: int = 0, **more: str
) -> Command:
    """The request with that body."""
    ext = ext_of(body, **more)
    return Command(RequestCode.REGISTER_BROKER, opaque, flag, CURRENT, 0, None, ext, body, kind)


def signed(
    command: Command, key: str = "K", secret: str = "a secret of 24 characters", *, first: bool = False
) -> Command:
    """The request with a key and its signature, before all other fields or behind them."""
    fields = dict(AclCredentials(key, secret)("", Request(command.code, command.ext, command.body)).ext or {})
    added = {name: fields.pop(name) for name in (ACCESS_KEY, SIGNATURE)}
    return replace(command, ext=added | fields if first else fields | added)


def stamps_of_all_lengths() -> Iterator[int]:
    """Stamps whose bodies have checksums of 10, 9 and 8 digits."""
    wanted = {10, 9, 8}
    for stamp in range(1, 10_000):
        digits = len(str(body_crc32(body_of(stamp))))
        if digits in wanted:
            wanted.remove(digits)
            yield stamp
