"""What a registration (103) says, what answers it, and the signature by which an unchanged one is known."""

from hashlib import blake2b

import msgspec
from zlib_ng.zlib_ng import crc32

from registry.keys import member_key
from registry.renewals import Again
from remoting.body_signature import split_signature
from remoting.data_version import DataVersion, decode_data_version
from remoting.version import V3_0_11

DEFAULT_TIMEOUT_MS = 120_000
TIMEOUT_MAX_MS = 86_400_000


class Registration(msgspec.Struct, frozen=True):
    """What a broker says of itself in a REGISTER_BROKER request; `body` as it came, its checksum already checked.

    `timeout_ms` is clamped to 1 ms … 1 day. `acting` is enableActingMaster, None from brokers that do not know it.
    """

    cluster: str
    name: str
    address: str
    id: int
    ha: str | None = None
    zone: str | None = None
    acting: bool | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    version: int = 0
    compressed: bool = False
    body: bytes = b""

    @property
    def member(self) -> str:
        return member_key(self.cluster, self.address)


class Registered(msgspec.Struct, frozen=True):
    """The answer: addresses for a slave whose master lives, the order topics (None: no such KV namespace).

    `event_id` is the last entry that the registration wrote, "" for none; `refused` a newcomer whose state version
    was lower than the holder's. `again` is set for an unchanged one whose body names its data version: how each other
    is had whose body has the same signature and whose header says the same."""

    master_address: str | None = None
    ha_address: str | None = None
    order_table: dict[str, str] | None = None
    event_id: str = ""
    refused: bool = False
    again: Again | None = None


class Signature(msgspec.Struct, frozen=True):
    """What tells an unchanged registration: `content` over all but the data versions, `version` the data version.

    `version` is None when the body is not laid out as Java's brokers lay it out: then `content` covers it."""

    content: str
    version: DataVersion | None

    @property
    def identity(self) -> str:
        """Of all but the data versions and what comes after them: the topics."""
        return self.content.partition(":")[0]


def signature(registration: Registration, *, delete_missing: bool) -> Signature:
    """The signature of a registration; 5.x stamps mappingDataVersion with the present, so it is left out."""
    r = registration
    split = split_signature(r.body) if r.version >= V3_0_11 else None
    if split and b'"timestamp"' not in split[0]:
        split = None  # such a version is of this very moment, and equal to none before
    version, head, rest = (
        (decode_data_version(split[0]), split[1], split[2]) if split else (None, b"", memoryview(r.body))
    )
    identity = msgspec.json.encode(
        (
            r.version,
            r.cluster,
            r.name,
            r.address,
            r.id,
            r.ha,
            r.zone,
            r.acting,
            r.timeout_ms,
            r.compressed,
            delete_missing,
        )
    )
    digest = blake2b(identity + head, digest_size=8).hexdigest()
    return Signature(f"{digest}:{len(rest)}:{crc32(rest):08x}", version)
