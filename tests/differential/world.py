"""The names of one world: no example meets the names of another."""

import re
from typing import Any

from msgspec import Struct

from testbed.connection import V4_8_0

NAME, ADDRESS = "@", "~"


class World(Struct, frozen=True):
    """Requests are written with `@` before every name and `~` and a digit for an address; the world fills that in.

    `four` is a world whose peers are 4.x: Java 4.9.7 is compared in it, too."""

    number: int
    four: bool

    @property
    def prefix(self) -> str:
        return f"w{self.number}_"

    @property
    def host(self) -> str:
        """Return an address without a listener, so that a broker is removed when its connection is closed."""
        return f"127.30.{self.number >> 8 & 255}.{self.number & 255}:"

    def filled(self, text: str) -> str:
        """Return the text as it is sent."""
        return re.sub(f"{ADDRESS}(?=[0-9])", self.host, text).replace(NAME, self.prefix)

    def masked(self, text: str) -> str:
        """Return the text as it is compared and shown."""
        return text.replace(self.host, ADDRESS).replace(self.prefix, NAME)


class Registration(Struct, frozen=True):
    """A masked REGISTER_BROKER request for rules; `topics` are the names inside the values.

    `version` is the data version as (state version, timestamp, counter), None where the body gives no timestamp."""

    cluster: str
    name: str
    addr: str
    id: int
    acting: bool | None = None
    zone: str | None = None
    topics: tuple[str, ...] = ()
    version: tuple[int, int, int] | None = (0, 0, 0)
    infos: tuple[tuple[str, str], ...] = ()
    """Static topics as (key, bname)."""
    null_member: bool = False
    zlib_of_5x: bool = False


class Ask(Struct, frozen=True):
    """One request, masked. `over` is the number of the connection it goes over.

    `packing` is what becomes of the body before it is sent (`tests.differential.bodies`). `says` is set for a
    registration that Java 5.5.0 can read."""

    code: int
    ext: dict[str, str] | None = None
    body: str = ""
    packing: str = ""
    version: int = V4_8_0
    binary: bool = False
    oneway: bool = False
    over: int = 0
    says: Registration | None = None

    def get(self, field: str) -> str | None:
        return (self.ext or {}).get(field)


class Group(Struct, frozen=True):
    """One broker name in the cluster info."""

    cluster: str
    addrs: dict[int, str]
    acting: bool
    zone: str | None


class Live(Struct, frozen=True):
    """A member that registered: how, and over which connections that are still open (last: the newest)."""

    says: Registration
    over: tuple[int, ...]


Member = tuple[str, str]
"""Cluster and address."""


class State(Struct, frozen=True):
    """The world before a request, from this server's replies and the machine's record."""

    groups: dict[str, Group] = {}
    clusters: dict[str, tuple[str, ...]] = {}
    queues: dict[str, dict[str, dict[str, Any]]] = {}
    """topic -> broker name -> queue data."""
    live: dict[Member, Live] = {}
    replaced: dict[Member, int] = {}
    """Members that were replaced by another address, with their last connection."""
    foreign: frozenset[tuple[str, str]] = frozenset()
    """Static topics (topic, bname) that a broker of another name has announced."""
    departed: frozenset[str] = frozenset()
    """Broker names that were registered and removed."""
    deleted: frozenset[str] = frozenset()
    """Topics that 216 has deleted."""

    def group(self, name: str | None) -> Group | None:
        return self.groups.get(name or "")

    def clusters_of(self, name: str | None) -> set[str]:
        return {cluster for cluster, names in self.clusters.items() if name in names}

    def names_of(self, addr: str | None) -> set[str]:
        return {name for name, group in self.groups.items() if addr in group.addrs.values()}
