"""Groups: the members of a broker name, over a while and at an instant, and what held of the name."""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from mqpipeline.history.tables import Drain, GroupKey, Id, NameVersion, Session, Tables


class State(NamedTuple):
    """A group at an instant: `addrs` maps broker id to address, lowest first; `acting` is enableActingMaster;
    `since` says when acting, zone and drain came to be as they are, None where nothing says it."""

    cluster: str
    addrs: dict[int, str]
    acting: bool
    zone: str | None
    drain: Drain | None
    since: tuple[int, Id] | None


class Group(NamedTuple):
    """Sessions of its members, and what held of its name, both of a while and oldest first."""

    sessions: tuple[Session, ...]
    held: tuple[NameVersion, ...]

    def at(self, ms: int) -> State | None:
        """Return the group as it was then, None if it had no member.

        Of two members with one id the later is taken. A drain whose time is over ends by itself, before its end is
        written."""
        members = [session for session in self.sessions if session.start_ms <= ms < session.until_ms]
        if not members:
            return None
        addrs = {member.broker_id: member.addr for member in members}
        held = [version for version in self.held if version.from_ms <= ms < version.until_ms]
        cluster, ordered = members[0].cluster, dict(sorted(addrs.items()))
        if not held:
            return State(cluster, ordered, False, None, None, None)
        name = held[-1]
        over = name.drain is not None and name.drain.until_ms is not None and name.drain.until_ms <= ms
        return State(
            cluster if name.cluster is None else name.cluster,
            ordered,
            bool(name.acting),
            name.zone,
            None if over else name.drain,
            (name.from_ms, name.from_id),
        )


def _begin(session: Session) -> tuple[Id, int, str, int]:
    """What orders sessions; several may be known from one entry of a checkpoint."""
    return session.start_id, session.start_ms, session.cluster, session.broker_id


def groups(
    tables: Tables,
    from_ms: int,
    to_ms: int,
    brokers: Collection[str] | None = None,
    *,
    as_recorded: bool = False,
) -> dict[GroupKey, Group]:
    """Return each group with a member at some instant of [from_ms, to_ms], of these broker names or of all."""
    sessions: dict[GroupKey, list[Session]] = defaultdict(list)
    for session in tables.sessions_during(from_ms, to_ms, brokers, as_recorded=as_recorded):
        sessions[session.group].append(session)
    held: dict[tuple[int, str], list[NameVersion]] = defaultdict(list)
    for version in tables.names_during(from_ms, to_ms, brokers):
        held[version.inc, version.broker].append(version)
    return {
        key: Group(
            tuple(sorted(of_group, key=_begin)),
            tuple(sorted(held[key.inc, key.broker], key=lambda version: version.from_id)),
        )
        for key, of_group in sessions.items()
    }
