"""Encoding JSON bodies as Java name servers do: compact, members alphabetical, without null members.

Escapes are those of RocketMQ 5.5.0: characters below U+0020 in lower-case hexadecimal digits; all others are
UTF-8."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

encode_json: Final = msgspec.json.Encoder().encode
"""Return the JSON of plain types, Structs and Raw values; members in the order given."""


class Dialect(Enum):
    """The form of map keys that are numbers."""

    LEGACY = "legacy"
    """Without quotes: invalid JSON, but the only form that Go clients up to 2.1.1 accept."""
    STANDARD = "standard"
    """With quotes and sorted as text: for clients of 4.9.4 or later, or if the request asks for it."""


def number_map(table: Mapping[int, str] | Mapping[int, int], dialect: Dialect) -> Raw:
    """Return the JSON of a map with number keys: `{0:"10.0.0.1:10911"}` or `{"0":"10.0.0.1:10911"}`."""
    if dialect is Dialect.LEGACY:
        return Raw(b"{%b}" % b",".join([b"%d:%b" % (key, encode_json(table[key])) for key in sorted(table)]))
    return Raw(encode_json({str(key): table[key] for key in sorted(table, key=str)}))
