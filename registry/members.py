"""Members of brokers with their leases, and the clock these run by: what operators look at."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from registry.clock import LATE_MS, TIME, TIME_MAX_MS, unix_ms, whole_ms
from registry.keys import Keys, split_member_key
from registry.long_work.scan import members_of, some_of
from registry.plans import Batch, Plan, ScriptCall, call, pairs
from registry.queue_data.queue_text import filter_servers
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.typed import converted

NAMES_MAX = 40  # broker names a script, which reads fewer that have many members
USUAL_TIMEOUT_MS, TIMEOUT_MAX_MS = 120_000, 86_400_000  # as lua/includes
WHOLE = re.compile(r"[0-9]{1,14}")
TIME_TEXT = re.compile(r"-?[0-9]{1,14}", re.ASCII)

LeaseState = Literal["living", "held", "overdue"]


class Lease(msgspec.Struct, frozen=True):
    """A lease as it stood at `now_ms`; all times are Unix ms of the Redis clock.

    It ends at `end_ms`, and counts until `kept_until_ms` while a hold keeps it."""

    now_ms: int
    end_ms: int
    kept_until_ms: int
    timeout_ms: int

    @property
    def age_ms(self) -> int:
        """Return the time since the last heartbeat."""
        return self.now_ms - (self.end_ms - self.timeout_ms)

    @property
    def remaining_ms(self) -> int:
        """Return the time until routes omit the member, with holds; 0 when it is over."""
        return max(self.kept_until_ms - self.now_ms, 0)

    @property
    def state(self) -> LeaseState:
        """Return `living`, `held` (over, kept by a hold) or `overdue` (left out of routes, not recorded yet)."""
        if self.now_ms < self.end_ms:
            return "living"
        return "held" if self.now_ms < self.kept_until_ms else "overdue"

    @property
    def is_ending(self) -> bool:
        """Return whether it lives, and more than half of it passed without a heartbeat: with Java's times two are
        missing."""
        return self.state == "living" and is_ending(self.remaining_ms, self.timeout_ms)


def is_ending(remaining_ms: int, timeout_ms: int) -> bool:
    """Return whether more than half of a living lease has passed."""
    return 2 * remaining_ms < timeout_ms


class Member(msgspec.Struct, frozen=True):
    """One registered address of a broker.

    `version` is None until its registration is complete; `owners` are the connections, `<worker>/<connection>`, that
    it registered over, none for members that registered by HTTP; `hosts` are those that they came from."""

    cluster: str
    id: int
    address: str
    ha: str | None
    version: DataVersion | None
    filters: tuple[str, ...]
    since_ms: int
    owners: tuple[str, ...]
    hosts: frozenset[str]
    lease: Lease
    mirrored: str | None = None


class Broker(msgspec.Struct, frozen=True):
    """A broker name: its cluster (that of the first registration), all clusters that list it, and its members by id.

    `acting_master` is enableActingMaster of the last registration, `host` where the first one came from."""

    name: str
    cluster: str
    clusters: tuple[str, ...]
    epoch: int
    acting_master: bool
    zone: str | None
    members: tuple[Member, ...]
    host: str | None = None


class LeaseClock(msgspec.Struct, frozen=True):
    """The Redis clock, and what workers noted by it: None while none ever did. All are Unix ms.

    `tick_ms` is when a worker last renewed its lease and saw all others, `started_ms` when the service began,
    `hold_until_ms` the end of the last hold, `follow_ms` when a worker last followed the stream of events, `back_at_ms`
    when the clock went back last, by `back_ms`. `behind_ms` is by how much what a worker has applied of the stream is
    behind its end, of the worker of which that is most, as noted at `behind_at_ms`."""

    now_ms: int
    tick_ms: int | None
    started_ms: int | None
    hold_until_ms: int | None
    follow_ms: int | None = None
    back_ms: int | None = None
    back_at_ms: int | None = None
    behind_ms: int | None = None
    behind_at_ms: int | None = None

    @property
    def service_age_s(self) -> float | None:
        """How long the service has run; None while no worker ever did."""
        return None if self.started_ms is None else (self.now_ms - self.started_ms) / 1000

    @property
    def late(self) -> bool:
        """No worker renews leases: none serves the wire, or the store refuses writes."""
        return self.tick_ms is None or self.now_ms - self.tick_ms > LATE_MS

    @property
    def unfollowed(self) -> bool:
        """No worker follows the stream, so no change is acknowledged; workers before 0.2 did not say."""
        return self.follow_ms is not None and self.now_ms - self.follow_ms > LATE_MS

    @property
    def behind_now_ms(self) -> int | None:
        """By how much the worker that is furthest behind is so now; None where none has said so in time."""
        is_new = self.behind_at_ms is not None and self.now_ms - self.behind_at_ms <= LATE_MS
        return self.behind_ms if is_new else None


def broker_names(keys: Keys, cluster: str | None = None, prefix: str = "") -> Plan[tuple[str, ...]]:
    """Return all broker names, or those that a cluster lists, sorted; with a prefix only those that begin so."""
    listed = keys.brokers if cluster is None else keys.cluster(cluster)
    return tuple(sorted((yield from members_of(listed, prefix))))


def brokers(keys: Keys, names: Sequence[str]) -> Plan[tuple[Broker, ...]]:
    """Return the brokers of these names that have members, in the order given.

    Up to forty at a time are read at one moment; one of very many members by several scripts."""
    read: list[Broker] = []
    done, after = 0, ""
    while done < len(names):
        asked = some_of(names, done, NAMES_MAX)
        raw = yield ScriptCall("read_members", (keys.events_meta, keys.leases), (after, *asked))
        reply = converted(raw, _Reply, strict=False)
        found = [_broker(reply.now_ms, row) for row in reply.brokers]
        if after and found and read and found[0].name == read[-1].name:
            found[0] = replace(found[0], members=read.pop().members + found[0].members)
        read += found
        after = reply.read_to
        done += reply.done - bool(after)
    return tuple(read)


def lease_clock(keys: Keys) -> Plan[LeaseClock]:
    """Return the time, and when leases were renewed last."""
    time, times = yield Batch(
        (
            TIME,
            call(
                "HMGET",
                keys.events_meta,
                *("tick_ms", "started_ms", "hold_until_ms", "follow_ms", "back_ms", "back_at_ms"),
                *("behind_ms", "behind_at_ms"),
            ),
        )
    )
    return LeaseClock(unix_ms(time), *map(_whole, times))


def _whole(text: str | None) -> int | None:
    """Return a number; what is none, because the hash was damaged, counts as absent until it is written again, as in
    lua/includes/lease.lua."""
    return int(text) if text is not None and TIME_TEXT.fullmatch(text) else None


class _MemberRow(msgspec.Struct, frozen=True, array_like=True):
    """A member in the reply of lua/read_members.lua; `fields` are `[field, value, ...]`."""

    id: int
    key: str
    end_ms: float
    kept_until_ms: float
    fields: list[str]


class _BrokerRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    fields: list[str]
    members: list[_MemberRow]


class _Reply(msgspec.Struct, frozen=True, array_like=True):
    """`done` is how many of the names were read, `read_to` the id up to which the last one was, if not whole."""

    now_ms: int
    brokers: list[_BrokerRow]
    done: int
    read_to: str


def _broker(now_ms: int, row: _BrokerRow) -> Broker:
    attributes = pairs(row.fields)
    return Broker(
        row.name,
        attributes["cluster"],
        tuple(sorted(field[3:] for field in attributes if field.startswith("in:"))),
        int(attributes["epoch"]),
        attributes["acting"] == "1",
        attributes.get("zone"),
        tuple(sorted((_member(now_ms, member) for member in row.members), key=lambda member: member.id)),
        attributes.get("network") or None,
    )


def _member(now_ms: int, row: _MemberRow) -> Member:
    fields = pairs(row.fields)
    cluster, address = split_member_key(row.key)
    version, filters = fields.get("dv"), fields.get("filters")
    hosts = {field[6:]: host for field, host in fields.items() if field.startswith("owner:")}
    timeout_ms = _number(fields, "timeout", TIMEOUT_MAX_MS, damaged=USUAL_TIMEOUT_MS)
    return Member(
        cluster,
        row.id,
        address,
        fields.get("ha"),
        stored_version(version),
        filter_servers(filters) if filters else (),
        _number(fields, "since", TIME_MAX_MS, damaged=now_ms),
        tuple(sorted(hosts)),
        frozenset(hosts.values()),
        Lease(now_ms, whole_ms(row.end_ms), whole_ms(row.kept_until_ms), timeout_ms),
        fields.get("mirrored"),
    )


def stored_version(text: str | None) -> DataVersion | None:
    """Return the data version; None without, and of damage, which the broker's next registration puts right."""
    try:
        return DataVersion.from_text(text) if text else None
    except ValueError:
        return None


def _number(fields: Mapping[str, str], name: str, most: int, *, damaged: int) -> int:
    """Return a number of a member, `damaged` where there is none: a walk repairs it within a minute."""
    text = fields.get(name, "")
    number = int(text) if WHOLE.fullmatch(text) else 0
    return number if 0 < number <= most else damaged
