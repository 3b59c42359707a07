"""A registration (103), and the signature by which an unchanged one is recognised."""

from hashlib import blake2b

import msgspec
from zlib_ng.zlib_ng import crc32, crc32_combine

from registry.growth.limits import Limits
from registry.keys import Keys, member_key
from registry.members import USUAL_TIMEOUT_MS
from registry.options.networks import link_of
from registry.ownership import UNGUARDED, Claimant
from registry.plans import Origin
from rocketmq_remoting.body_signature import filter_servers_before, split_signature
from rocketmq_remoting.data_version import DataVersion, decode_data_version
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.version import V3_0_11


class Registration(msgspec.Struct, frozen=True):
    """A REGISTER_BROKER request; `body` as received, its checksum already checked; `crc` is its CRC-32, if known.

    `timeout_ms` is clamped to 1 ms … 1 day. `acting` is enableActingMaster, None from brokers without that field.
    `single_topic` accepts a first registration with exactly one topic, which RocketMQ 5.x refuses.
    `mirrored` names the name servers that a mirror read it from, None of a broker's own.
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
    mirrored: str | None = None

    @property
    def member(self) -> str:
        return member_key(self.cluster, self.address)


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
    version = None if split is None else version_in(split[0])
    head, rest = (b"", memoryview(r.body)) if split is None or version is None else split[1:]
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
            *(() if r.mirrored is None else ("mirrored", r.mirrored)),
        )
    )
    digest = blake2b(identity + head, digest_size=8).hexdigest()
    return Signature(content(digest, r.body, rest, r.crc), version)


def names_filter_servers_first(front: bytes, body: RegisterBrokerBody) -> bool:
    """Return whether the filter servers of a body are those before its data version, which the identity is over.

    Others may come behind the topics, and these count. `front` is as `split_signature` has it."""
    listed = filter_servers_before(front)
    if listed == b"[]":
        return body.filter_servers == ()
    try:
        return body.filter_servers == tuple(msgspec.json.decode(listed))
    except msgspec.DecodeError:
        return False


def version_in(text: bytes) -> DataVersion | None:
    """Return the data version of a body; None without a timestamp: such a version is the present time, and equals none
    before. Raises BodyError."""
    return decode_data_version(text) if b'"timestamp"' in text else None


def content(identity: str, body: bytes, rest: memoryview, crc: int | None) -> str:
    """Return `Signature.content` of a body that ends with `rest`, whose CRC-32 is `crc` if that is known.

    The CRC-32 of the end of a long body takes as long as reading it, so that of all is used."""
    if crc is None:
        of_rest = crc32(rest)
    else:
        of_rest = crc ^ crc32_combine(crc32(memoryview(body)[: len(body) - len(rest)]), 0, len(rest))
    return f"{identity}:{len(rest)}:{of_rest:08x}"


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
