"""The mirror: rounds that look at name servers, and write what changed there."""

import asyncio
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from msgspec.structs import replace

from mqns.errors import ConfigError, RemotingError
from mqns.mirror.groups import Group, groups_of
from mqns.mirror.kv_copy import KVCopy
from mqns.mirror.rounds import Round, RoundNotes
from mqns.mirror.source import Source
from mqns.mirror.target import MirroredMember, OwnRegistration, Refused, Registration, Target

__all__ = ["MARK_MOST", "Mirror"]

RENEWED: Final = "renewed"
OWN: Final = "ownRegistration"
AT_ONCE: Final = 1000
"""Members of a request for renewals."""
IS_TARGET: Final = "it is the name server that is written to, of which no broker counts as there"
MARK_MOST: Final = 255
"""Characters of all addresses together, as the name server takes them."""


class Mirror:
    """Keeps what the sources have registered at the target, marked with their addresses (`mark`).

    Leases are renewed only in rounds that see the broker; what a source lacks is removed only where all have answered
    and none may have been started again since."""

    def __init__(self, sources: Sequence[Source], target: Target, kv: Sequence[str] = ()) -> None:
        self.mark = ";".join(sorted(source.address for source in sources))
        self._sources = sources
        self._target = target
        self._kv = [KVCopy(namespace) for namespace in kv]
        self._states: dict[MirroredMember, str] = {}
        self._written: dict[MirroredMember, tuple[object, ...]] = {}
        self._knows_the_rest = False

    async def round(self, reading_s: float = inf) -> Round:
        """Look, and write what differs; topics are read for so long at most.

        Raises TooManyRows; ConfigError if a source is the target, before anything is written."""
        notes = RoundNotes()
        read_before = self._routes_read
        await asyncio.gather(*(source.look() for source in self._sources))
        groups = groups_of(self._sources)
        try:
            if await self._leave_out_target():
                groups = groups_of(self._sources)
            await self._renew(groups, notes)
            await self._write(groups.values(), notes)
            await self._remove(groups, notes)
            await self._read(groups.values(), asyncio.get_running_loop().time() + reading_s)
            await self._write(groups.values(), notes)
            for copy in self._kv:
                notes.kv += await copy.follow(self._sources, self._target)
        except (RemotingError, Refused) as error:
            notes.failures.append(str(error))
            notes.target_answered = not isinstance(error, RemotingError)
        states = [self._states.get(member) for group in groups.values() for member in group.members]
        return replace(
            notes.done(),
            reading=tuple(group.name for group in groups.values() if not self._is_read(group)),
            sources={source.address: source.failure for source in self._sources},
            routes_read=self._routes_read - read_before,
            topics_left_out=sum(source.topics_left_out for source in self._sources),
            mirrored=states.count(RENEWED),
            registered_themselves=states.count(OWN),
        )

    async def _leave_out_target(self) -> bool:
        """Have sources fail that are the target itself, as where an address was turned over, and return whether any is:
        what it has as mirrored would be renewed for ever. Raises ConfigError as long as nothing was written."""
        ours = [source for source in self._sources if source.service_start is not None]
        if not ours:
            return False
        started = await self._target.service_start()
        targets = [source for source in ours if source.service_start == started]
        for source in targets:
            if not self._knows_the_rest:
                raise ConfigError(f"{source.address}: {IS_TARGET}; a mirror follows other ones")
            source.fail(IS_TARGET)
        return bool(targets)

    async def _renew(self, groups: dict[str, Group], notes: RoundNotes) -> None:
        """Renew the leases of what was seen; the states say what is to be registered."""
        if not self._knows_the_rest:  # of an earlier run of this mirror
            self._states |= dict.fromkeys(await self._target.mirrored(self.mark), RENEWED)
            self._knows_the_rest = True
        seen = [member for group in groups.values() for member in group.members]
        for at in range(0, len(seen), AT_ONCE):
            page = seen[at : at + AT_ONCE]
            for member, state in zip(page, await self._target.renew(page), strict=True):
                self._note(member, state, notes)
                notes.renewed += state == RENEWED

    def _note(self, member: MirroredMember, state: str, notes: RoundNotes) -> None:
        if state == OWN and self._states.get(member) != OWN:
            notes.own.append(member)
        if state != RENEWED:
            self._written.pop(member, None)
        self._states[member] = state

    async def _write(self, groups: Iterable[Group], notes: RoundNotes) -> None:
        """Register what is not, or differs from what was written last; of brokers whose topics are read."""
        for group in groups:
            if not self._is_read(group):
                continue
            for member in group.members:
                has_topics = member == group.topics_by
                version = self._source(group).version_of(group.name) if has_topics else 0
                wanted = (group.at, group.acting, group.zone, has_topics, version)
                if self._states.get(member) != OWN and self._written.get(member) != wanted:
                    await self._register(group, member, wanted, notes)

    async def _register(
        self, group: Group, member: MirroredMember, wanted: tuple[object, ...], notes: RoundNotes
    ) -> None:
        has_topics = member == group.topics_by
        topics = self._source(group).topics_of(group.name) if has_topics else ()
        registration = Registration(
            member.cluster,
            member.broker_name,
            member.broker_id,
            member.broker_addr,
            mirrored_from=self.mark,
            zone_name=group.zone,
            enable_acting_master=group.acting,
            topics=topics or (),
        )
        was_there = self._states.get(member) == RENEWED
        try:
            changed = await self._target.register(registration)
        except OwnRegistration:
            self._note(member, OWN, notes)
        except Refused as error:
            notes.failures.append(f"{member.broker_name} at {member.broker_addr}: {error}")
        else:
            self._states[member], self._written[member] = RENEWED, wanted
            if changed:
                (notes.changed if was_there else notes.registered).append(member)

    async def _remove(self, groups: dict[str, Group], notes: RoundNotes) -> None:
        """Remove what no source has any more; where that is not certain its lease runs on."""
        seen = {member for group in groups.values() for member in group.members}
        gone = [member for member in self._states if member not in seen]
        is_certain = all(source.is_complete for source in self._sources)
        for member in gone:
            if self._states[member] == RENEWED:
                if not is_certain:
                    continue
                if await self._target.remove(member, self.mark):
                    notes.removed.append(member)
            del self._states[member]
            self._written.pop(member, None)

    async def _read(self, groups: Iterable[Group], until: float) -> None:
        names: dict[str, set[str]] = {source.address: set() for source in self._sources}
        for group in groups:
            names[group.at].add(group.name)
        await asyncio.gather(*(source.read_topics(names[source.address], until) for source in self._sources))

    def _is_read(self, group: Group) -> bool:
        return self._source(group).topics_of(group.name) is not None

    def _source(self, group: Group) -> Source:
        return next(source for source in self._sources if source.address == group.at)

    @property
    def _routes_read(self) -> int:
        return sum(source.routes_read for source in self._sources)
