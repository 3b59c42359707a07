"""What the findings of a name server are made of, read from its store."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from redis.exceptions import ResponseError

from registry import drift, gone_members, refused_claims, task_times, topic_counts
from registry.drains import DrainedBroker, drained_brokers, drained_names
from registry.drift import Comparison, Comparisons
from registry.errors import cause_of
from registry.events.consumers import Consumer, read_reports
from registry.expiry.worker_lease import silent_workers
from registry.gone_members import GoneMember
from registry.growth.limits import Limits
from registry.growth.usage import Usage, usage
from registry.keys import Keys
from registry.members import Broker, LeaseClock, broker_names, brokers, lease_clock
from registry.plans import Plan
from registry.refused_claims import RefusedClaim
from registry.repair import state as repairs
from registry.repair.state import Repaired, RepairState
from registry.store.check import Memory, memory, replica_of
from registry.task_times import TaskTime
from registry.topic_counts import TopicCounts

T = TypeVar("T")
HOSTS: Final = 10
REPAIRS: Final = "repairs"
NO_USAGE: Final = Usage(0, 0, 0, ())
NO_COMPARISONS: Final = Comparisons(0, {})
NO_REPAIRS: Final = RepairState(Repaired(), None, None, None, None)
UNREADABLE: Final = (ResponseError, msgspec.MsgspecError, ValueError, OverflowError)
"""What a plan raises of what no server writes, and of what the user may not read."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """`silent` are workers that stand still or ended without saying so, and when (Unix ms) each ticked last. `gone` are
    members that left without unregistering, `refused` what is for other brokers, `comparisons` of name servers by name.
    `counts` is None where topics were not counted for ten minutes, `tasks` where they cannot be read. `replica_of` is
    the master of a store that takes no writes. `unread` has each part that cannot, and why. `access_file_refused` is
    why the process that asks has not taken its access file as it is now, `discovery_loopback` are loopback addresses
    that it answers to clients of other machines as name servers."""

    clock: LeaseClock
    limits: Limits
    usage: Usage
    repair: RepairState
    brokers: tuple[Broker, ...] = ()
    drained: tuple[DrainedBroker, ...] = ()
    tasks: Mapping[str, TaskTime] | None = None
    counts: TopicCounts | None = None
    consumers: Mapping[str, Consumer] = {}
    silent: Mapping[str, int] = {}
    gone: tuple[GoneMember, ...] = ()
    refused: tuple[RefusedClaim, ...] = ()
    comparisons: Mapping[str, Comparison] = {}
    memory: Memory = Memory()
    replica_of: str | None = None
    unread: Mapping[str, str] = {}
    access_file_refused: str | None = None
    discovery_loopback: tuple[str, ...] = ()


def read(keys: Keys, limits: Limits) -> Plan[Facts]:
    """Return the facts of the store; brokers and drains come page by page. Raises what the clock of leases raises, no
    other part."""
    clock = yield from lease_clock(keys)
    unread: dict[str, str] = {}
    no_reports: tuple[dict[str, Consumer], dict[str, str]] = {}, {}
    found = yield from _part(unread, "brokers", _brokers(keys), ())
    consumers, _ = yield from _part(unread, "reports of consumers", read_reports(keys), no_reports)
    return Facts(
        clock=clock,
        limits=limits,
        usage=(yield from _part(unread, "names", usage(keys, hosts=HOSTS), NO_USAGE)),
        repair=(yield from _part(unread, REPAIRS, repairs.state(keys), NO_REPAIRS)),
        brokers=found,
        drained=(yield from _part(unread, "drains", _drained(keys), ())),
        tasks=(yield from _part(unread, "jobs", task_times.read(keys), None)),
        counts=(yield from _part(unread, "counts of topics", topic_counts.read(keys), None)),
        consumers=consumers,
        silent=(yield from _part(unread, "leases of workers", silent_workers(keys, clock.now_ms), {})),
        gone=(
            yield from _part(unread, "members that left", gone_members.read(keys, clock.now_ms, found), ())
        ),
        refused=(yield from _part(unread, "refusals", refused_claims.read(keys, clock.now_ms), ())),
        comparisons=(
            yield from _part(unread, "comparisons", drift.comparisons(keys), NO_COMPARISONS)
        ).by_name,
        memory=(yield from _part(unread, "INFO", memory(), Memory())),
        replica_of=(yield from _part(unread, "INFO", replica_of(), None)),
        unread=unread,
    )


def _part(unread: dict[str, str], what: str, plan: Plan[T], absent: T) -> Plan[T]:
    """Return a part of the facts, `absent` where it is damaged or refused, which `unread` gets."""
    try:
        return (yield from plan)
    except UNREADABLE as error:
        unread[what] = cause_of(error)
        return absent


def _brokers(keys: Keys) -> Plan[tuple[Broker, ...]]:
    return (yield from brokers(keys, (yield from broker_names(keys))))


def _drained(keys: Keys) -> Plan[tuple[DrainedBroker, ...]]:
    return (yield from drained_brokers(keys, (yield from drained_names(keys))))
