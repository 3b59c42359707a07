"""Routes at an instant, as the name server answered them (105)."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from mqpipeline.history.members import State, groups
from mqpipeline.history.tables import Drain, RouteVersion, Tables

PERM_WRITE: Final = 2
SYNC_MEMBER_TOPIC: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Topics of brokers for one another: never answered with an acting master."""
QUEUES: Final = ("read_queues", "write_queues", "perm", "sys_flag")


class Shown(msgspec.Struct, frozen=True):
    """What an answer shows of a topic on a broker. `perm` is without the write bit while the broker is drained; `addrs`
    maps broker id to address; `acting` is enableActingMaster."""

    cluster: str
    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int
    addrs: dict[int, str]
    acting: bool
    zone: str | None


class Route(NamedTuple):
    """A topic on a broker at an instant; `stored_perm` is without regard to the drain."""

    topic: str
    broker: str
    shown: Shown
    epoch: int
    stored_perm: int
    drain: Drain | None


def route_at(
    tables: Tables, topic: str, at_ms: int, *, as_recorded: bool = False, acting_master: bool = False
) -> list[Route]:
    """Return the route of one topic; see `routes_at`."""
    versions = [*tables.routes_during(at_ms, at_ms, [topic])]
    brokers = {version.broker for version in versions}
    return [*_routes(tables, versions, at_ms, brokers, as_recorded=as_recorded, acting_master=acting_master)]


def routes_at(
    tables: Tables, at_ms: int, *, as_recorded: bool = False, acting_master: bool = False
) -> Iterator[Route]:
    """Yield all routes of then, one for each broker of each topic.

    `as_recorded`: members whose lease ended stay until that was written, not only until it ended. `acting_master`: as
    with the setting supportActingMaster, which no table has."""
    versions = tables.routes_during(at_ms, at_ms)
    return _routes(tables, versions, at_ms, None, as_recorded=as_recorded, acting_master=acting_master)


def _routes(
    tables: Tables,
    versions: Iterable[RouteVersion],
    at_ms: int,
    brokers: Collection[str] | None,
    *,
    as_recorded: bool,
    acting_master: bool,
) -> Iterator[Route]:
    living = groups(tables, at_ms, at_ms, brokers, as_recorded=as_recorded)
    states = {key: state for key, group in living.items() if (state := group.at(at_ms)) is not None}
    for version in versions:
        state = states.get(version.group)
        if state is not None:
            of_version = shown(version, state, acting_master=acting_master)
            yield Route(version.topic, version.broker, of_version, version.epoch, version.perm, state.drain)


def shown(version: RouteVersion, state: State, *, acting_master: bool) -> Shown:
    """Return what is shown of a route version while its group is in this state.

    With `acting_master` the smallest id is listed as 0, while the group has no master and is not writable."""
    perm = version.perm if state.drain is None else version.perm & ~PERM_WRITE
    addrs = state.addrs
    if (
        acting_master
        and state.acting
        and 0 not in addrs
        and not perm & PERM_WRITE
        and not version.topic.startswith(SYNC_MEMBER_TOPIC)
    ):
        least = min(addrs)
        addrs = {0 if number == least else number: address for number, address in addrs.items()}
    return Shown(
        state.cluster,
        version.read_queues,
        version.write_queues,
        perm,
        version.sys_flag,
        addrs,
        state.acting,
        state.zone,
    )
