"""Writing JSON bodies the way Java name servers do: compact, members alphabetical, null members left out.

Escapes are those of RocketMQ 5.5.0: only what is below U+0020, in lower-case hexadecimal digits; all else is
UTF-8."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

encode_json: Final = msgspec.json.Encoder().encode
"""Any value of plain types, Structs and Raw pieces; members in the order they are given."""


class Dialect(Enum):
    """How map keys that are numbers are written."""

    LEGACY = "legacy"
    """Without quotes, which is no valid JSON but all that Go clients up to 2.1.1 read."""
    STANDARD = "standard"
    """With quotes and sorted as text: for clients of version 4.9.4 or later, or that ask for it."""


def number_map(table: Mapping[int, str] | Mapping[int, int], dialect: Dialect) -> Raw:
    """A map with numbers for keys: `{0:"10.0.0.1:10911"}` or `{"0":"10.0.0.1:10911"}`."""
    if dialect is Dialect.LEGACY:
        return Raw(b"{%b}" % b",".join([b"%d:%b" % (key, encode_json(table[key])) for key in sorted(table)]))
    return Raw(encode_json({str(key): table[key] for key in sorted(table, key=str)}))
