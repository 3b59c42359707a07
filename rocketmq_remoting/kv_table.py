"""KVTable: the response body of GET_KVLIST_BY_NAMESPACE, and the order table in responses to registrations."""

import msgspec

from rocketmq_remoting.json_decoding import decode_json, without_nulls
from rocketmq_remoting.json_encoding import encode_json


class KVTable(msgspec.Struct, frozen=True):
    """The keys of one KV namespace and their values."""

    table: dict[str, str]


class _KVTableMembers(msgspec.Struct):
    table: dict[str, str | None] | None = None


def encode_kv_table(table: KVTable) -> bytes:
    """`{"table":{"OrderTopic":"broker-a:4;broker-b:4"}}`, keys sorted."""
    return encode_json({"table": {key: table.table[key] for key in sorted(table.table)}})


def decode_kv_table(body: bytes) -> KVTable:
    """Return the table without keys whose value is null. Raises BodyError."""
    return KVTable(without_nulls(decode_json(body, _KVTableMembers).table))
