"""A registration (103), its answer, and the signature by which an unchanged one is recognised."""

from hashlib import blake2b

import msgspec
from zlib_ng.zlib_ng import crc32, crc32_combine

from registry.growth.limits import Limits
from registry.keys import Keys, member_key
from registry.members import USUAL_TIMEOUT_MS
from registry.options.catalogue import Options
from registry.options.networks import link_of
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Origin, pairs
from registry.registration.decision import Outcome
from registry.registration.renewals import Renewal
from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.version import V3_0_11


class Registration(msgspec.Struct, frozen=True):
    """A REGISTER_BROKER request; `body` as received, its checksum already checked; `crc` is its CRC-32, if known.

    `timeout_ms` is clamped to 1 ms … 1 day. `acting` is enableActingMaster, None from brokers without that field.
    `single_topic` accepts a first registration with exactly one topic, which RocketMQ 5.x refuses.
    """

    cluster: str
    name: str
    address: str
    id: int
    ha: str | None = None
    zone: str | None = None
    acting: bool | None = None
    timeout_ms: int = USUAL_TIMEOUT_MS
    version: int = 0
    compressed: bool = False
    body: bytes = b""
    crc: int | None = None
    single_topic: bool = False

    @property
    def member(self) -> str:
        return member_key(self.cluster, self.address)


class Registered(msgspec.Struct, frozen=True):
    """The answer: addresses for a slave whose master lives, the order topics (None: no such KV namespace).

    `event_id` is the last entry written, "" for none; the outcome `conflict` is of a newcomer whose state version was
    lower than the holder's. `renewal` is set for an unchanged registration whose body names its data version: the
    script item that answers every other with the same header and body signature."""

    master_address: str | None = None
    ha_address: str | None = None
    order_table: dict[str, str] | None = None
    event_id: str = ""
    outcome: Outcome = "unchanged"
    renewal: Renewal | None = None

    @classmethod
    def of(
        cls,
        master: tuple[str, str],
        order_table: list[str],
        *,
        event_id: str = "",
        outcome: Outcome = "unchanged",
        renewal: Renewal | None = None,
    ) -> "Registered":
        """Return the answer that a script's reply stands for: `{"1", topic, value, ...}` is an order table."""
        table = pairs(order_table[1:]) if order_table[0] == "1" else None
        return cls(master[0] or None, master[1] or None, table, event_id, outcome, renewal)

    @property
    def refused(self) -> bool:
        """Return whether another member keeps the id."""
        return self.outcome == "conflict"

    def order_topics(self, options: Options) -> dict[str, str] | None:
        """Return the order topics for the broker, None without returnOrderTopicConfigToBroker."""
        return self.order_table if options.return_order_topic_config_to_broker else None


class Signature(msgspec.Struct, frozen=True):
    """Recognises an unchanged registration: `content` is over all but the data versions, `version` the data version.

    `version` is None when the body is not laid out as Java's brokers lay it out: then `content` covers it."""

    content: str
    version: DataVersion | None

    @property
    def identity(self) -> str:
        """Return the part of `content` over what comes before the topics."""
        return self.content.partition(":")[0]


def signature(
    registration: Registration, *, delete_missing: bool, claimant: Claimant = UNGUARDED
) -> Signature:
    """Return the signature of a registration; 5.x stamps mappingDataVersion with the present, so it is left out.

    With ownershipGuard it has the registrant, so that lua/register.lua judges each one's first registration."""
    r = registration
    split = split_signature(r.body) if r.version >= V3_0_11 else None
    if split and b'"timestamp"' not in split[0]:
        split = None  # such a version is the present time, and equals none before
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
            *((claimant.registrant,) if claimant.guard else ()),
        )
    )
    digest = blake2b(identity + head, digest_size=8).hexdigest()
    return Signature(f"{digest}:{len(rest)}:{_crc_of_rest(r, rest):08x}", version)


def _crc_of_rest(registration: Registration, rest: memoryview) -> int:
    """Return the CRC-32 of the end of a body: of a long one it takes as long as reading it, so that of all is used."""
    if registration.crc is None:
        return crc32(rest)
    before = memoryview(registration.body)[: len(registration.body) - len(rest)]
    return registration.crc ^ crc32_combine(crc32(before), 0, len(rest))


class RegisterContext(msgspec.Struct, frozen=True):
    """A registration, its member's key and signature, and where it came from.

    `owner` is the connection it came over, `<worker>/<connection>`, and `host` where its peer came from; no owner
    for one over HTTP; `delete_missing` is the option deleteTopicWithBrokerRegistration."""

    keys: Keys
    registration: Registration
    member: str
    origin: Origin
    signature: Signature
    owner: str | None
    host: str | None
    delete_missing: bool
    limits: Limits
    claimant: Claimant

    @property
    def network(self) -> str | None:
        """Return the host, an IPv6 one as the network of its link, where a machine may have any number of addresses."""
        return self.host if self.host is None or ":" not in self.host else link_of(self.host)
