"""KVTable: the answer of GET_KVLIST_BY_NAMESPACE, and the order table in answers to registrations."""

import msgspec

from remoting.json_in import decode_json, without_nulls
from remoting.json_out import encode_json


class KVTable(msgspec.Struct, frozen=True):
    """The keys of one KV namespace and their values."""

    table: dict[str, str]


class _Members(msgspec.Struct):
    table: dict[str, str | None] | None = None


def encode_kv_table(table: KVTable) -> bytes:
    """`{"table":{"OrderTopic":"broker-a:4;broker-b:4"}}`, keys sorted."""
    return encode_json({"table": dict(sorted(table.table.items()))})


def decode_kv_table(body: bytes) -> KVTable:
    """Read it back; keys whose value is null are left out. Raises BodyError."""
    return KVTable(without_nulls(decode_json(body, _Members).table))
