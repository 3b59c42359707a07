"""The registry in plain Python: RocketMQ 5.x RouteInfoManager, with the deviations this server makes on purpose.

Nothing here knows of Redis, scripts, slices or entries: each method is one request, done at one moment."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count

from msgspec.structs import replace

from registry.ownership import UNGUARDED, Claimant
from registry.registration.register import Registration
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.registration import RegisterBrokerBody

MASTER = 0
_serials = count(1)
Queues = tuple[int, int, int, int]  # readQueueNums, writeQueueNums, perm, topicSysFlag


class SingleTopic(Exception):
    """A newcomer with exactly one topic."""


class Owned(Exception):
    """It is for the registrant of a living member."""


@dataclass
class ModelMember:
    """What an address registered last, under whichever name."""

    cluster: str
    address: str
    lapsed: bool = False
    version: str = ""
    ha: str = ""
    timeout_ms: int = 0
    filters: tuple[str, ...] = ()
    owners: dict[str, str] = field(default_factory=dict)  # with the hosts that they came from
    registrant: str = ""
    serial: int = field(default_factory=lambda: next(_serials))
    renewals: int = 0  # how often its lease was renewed


@dataclass
class ModelBroker:
    """A broker name; `addrs` are its members by id."""

    cluster: str
    clusters: set[str] = field(default_factory=set)
    acting: bool = False
    zone: str = ""
    addrs: dict[int, ModelMember] = field(default_factory=dict)
    topics: dict[str, Queues] = field(default_factory=dict)
    mappings: dict[str, int] = field(default_factory=dict)  # the epoch of each static topic's info
    reduced: bool = False  # by the request that is being done
    pending: bool = False  # its write bits must go, for it has no master

    def living(self) -> dict[int, str]:
        return {number: one.address for number, one in sorted(self.addrs.items()) if not one.lapsed}


@dataclass
class Answer:
    """Of a registration: the living master of a slave, or that the newcomer was refused."""

    master: str | None = None
    ha: str | None = None
    refused: bool = False


class Model:
    """All tables. A failed request leaves them as they were."""

    def __init__(self) -> None:
        self.brokers: dict[str, ModelBroker] = {}
        self.members: dict[tuple[str, str], ModelMember] = {}
        self.kv: dict[str, dict[str, str]] = {}
        self.later = False  # write bits are cleared behind a request, and others may come in between

    # -- 103, 104, 322 and 904, connections, leases

    def register(
        self,
        r: Registration,
        body: RegisterBrokerBody,
        *,
        owner: str | None = None,
        delete_missing: bool = False,
        records_lapses: bool = True,
        claimant: Claimant = UNGUARDED,
    ) -> Answer:
        """Without `records_lapses` the lapses of other members are left for later, as they may be."""
        before = deepcopy((self.brokers, self.members))
        try:
            answer = self._register(r, body, owner, delete_missing, records_lapses, claimant)
        except (SingleTopic, Owned):
            self.brokers, self.members = before
            raise
        if answer.refused:
            self.brokers, self.members = before
        else:
            self._end()
        return answer

    def _register(
        self,
        r: Registration,
        body: RegisterBrokerBody,
        owner: str | None,
        delete_missing: bool,
        records_lapses: bool,
        claimant: Claimant,
    ) -> Answer:
        broker = self.brokers.setdefault(r.name, ModelBroker(r.cluster))
        me = self.members.get((r.cluster, r.address)) or ModelMember(r.cluster, r.address)
        if records_lapses:
            self._record_lapses(broker, me)
        reinstated = me.lapsed and broker.addrs.get(r.id) is me
        living = (r.cluster, r.address) in self.members and not me.lapsed
        renews = broker.addrs.get(r.id) is me
        has_another = any(named is not broker for named, _ in self._places(me))
        if living and has_another and not me.registrant.startswith("principal:"):
            claimant = replace(claimant, claims=False)  # its limits may not name that one
        renews_others = living and claimant.guard and not claimant.observes and not may_take(me, claimant)
        if me.lapsed:
            self._leave(me)
            me.lapsed, me.registrant = False, ""
        for other in () if claimant.observes else (me, *broker.addrs.values()):
            if other.address == r.address and comes_home(other, claimant):
                self._leave(other, given_away=True)
                if other is me:
                    living, renews_others, me = False, False, ModelMember(r.cluster, r.address)
        first = not broker.addrs and not reinstated
        if first:
            broker = self.brokers[r.name] = ModelBroker(r.cluster)
        displaced = []
        for number, other in list(broker.addrs.items()):
            if number != r.id and other.address == r.address:
                displaced += [] if other is me else [other]
                self._vacate(broker, number, given_away=True)
        holder = broker.addrs.get(r.id)
        rival = self.members.get((r.cluster, holder.address)) if holder else None
        state = int(rival.version.split(":")[0]) if rival and rival.version and not rival.lapsed else 0
        claims = claimant.guard and claimant.takes and holder and holder.registrant.startswith("host:")
        if holder and holder.address != r.address and state > body.data_version.state_version and not claims:
            return Answer(refused=True)
        if living and not (renews and may_renew(me, claimant)) and not may_take(me, claimant):
            raise Owned
        if not all(may_take(other, claimant) for other in (*displaced, holder) if other not in (None, me)):
            raise Owned
        master = broker.addrs.get(MASTER)
        is_stranger = r.id != MASTER and master not in (None, me) and not may_take(master, claimant)
        if is_stranger and r.cluster not in broker.clusters:
            raise Owned
        fresh = holder is None and not reinstated
        if fresh and len(body.topics) == 1:
            raise SingleTopic
        if holder not in (None, me):
            self._vacate(broker, r.id, given_away=True)
        broker.addrs[r.id] = me
        broker.clusters.add(r.cluster)
        is_guest = is_stranger and not claimant.observes
        if not is_guest:
            broker.acting, broker.zone = r.acting is True, r.zone or ""
        prime = r.acting is not None and r.id != MASTER and r.id == min(broker.addrs) and not is_guest
        every = first or fresh or me.version != body.data_version.text()
        if r.id == MASTER or prime:
            self._write(broker, r, body, every, prime and broker.acting, delete_missing)
        self.members[r.cluster, r.address] = me
        me.version, me.ha = body.data_version.text(), r.ha or ""
        me.timeout_ms = max(r.timeout_ms, me.timeout_ms) if renews_others else r.timeout_ms
        me.renewals += 1
        if body.filter_servers is not None:
            me.filters = body.filter_servers
        me.registrant = next_registrant(me, claimant)
        if owner and not (renews_others and is_of_own_host(me)):
            me.owners[owner] = claimant.registrant.partition(":")[2]
        if r.id == MASTER or master is None or master.lapsed:
            return Answer()
        return Answer(master.address, master.ha or None)

    def _write(
        self,
        broker: ModelBroker,
        r: Registration,
        body: RegisterBrokerBody,
        every: bool,
        strips: bool,
        delete_missing: bool,
    ) -> None:
        if delete_missing and not body.mapping_infos:
            broker.topics = {topic: one for topic, one in broker.topics.items() if topic in body.topic_keys}
        for topic, config in body.topics.items():
            if every or topic not in broker.topics:
                perm = config.perm & ~PERM_WRITE if strips else config.perm
                broker.topics[topic] = (
                    config.read_queue_nums,
                    config.write_queue_nums,
                    perm,
                    config.topic_sys_flag,
                )
        if every:
            broker.mappings |= {
                topic: info.epoch for topic, info in body.mapping_infos.items() if info.bname == r.name
            }

    def heartbeat(self, cluster: str, address: str, claimant: Claimant = UNGUARDED) -> str | None:
        """The stored data version, None for an unknown member. A lapsed one is back in all its places."""
        me = self.members.get((cluster, address))
        if me is None:
            return None
        if not may_renew(me, claimant):
            raise Owned
        if me.lapsed:
            places = list(self._places(me))
            for broker, number in places:
                self._vacate(broker, number)
                self._record_lapses(broker, me)
                broker.addrs[number] = me
            self.members[cluster, address] = me
            me.lapsed = False
        me.renewals += 1
        self._end()
        return me.version

    def unregister(self, cluster: str, address: str, name: str, claimant: Claimant = UNGUARDED) -> None:
        broker = self.brokers.get(name)
        if broker is not None:
            living = [one for one in broker.addrs.values() if not one.lapsed]
            of_others = [one for one in living if not may_take(one, claimant)]
            if any(one.address == address for one in of_others):
                raise Owned
            self._record_lapses(broker, None)
            for number, member in list(broker.addrs.items()):
                if member.address == address:
                    self._vacate(broker, number)
            broker.reduced |= not of_others  # even if the address was not in it
        me = self.members.get((cluster, address))
        if me is not None and me.lapsed:
            self._leave(me)
        self._end()

    def release_owner(self, cluster: str, address: str, owner: str) -> bool:
        """Whether that was the last connection of a member."""
        me = self.members.get((cluster, address))
        if me is None or owner not in me.owners:
            return False
        del me.owners[owner]
        return not me.owners

    def remove_disconnected(self, me: ModelMember) -> None:
        """A member without owners is removed, unless its lease was renewed."""
        for broker, _ in list(self._places(me)):
            self._record_lapses(broker, me)
        self._leave(me)
        self._end()

    def expire(self) -> None:
        for member in [one for one in self.members.values() if one.lapsed]:
            self._leave(member)
        self._end()

    # -- 205, 327, 216, 217

    def rewrite(self, name: str, *, wipe: bool) -> int:
        broker = self.brokers.get(name)
        if broker is None:
            return 0
        for topic, (read, write, perm, flag) in broker.topics.items():
            broker.topics[topic] = (read, write, perm & ~PERM_WRITE if wipe else PERM_READ | PERM_WRITE, flag)
        return len(broker.topics)

    def delete_topic(self, topic: str, cluster: str) -> None:
        for broker in self.brokers.values():
            if not cluster or cluster in broker.clusters:
                broker.topics.pop(topic, None)

    def register_topic(
        self, topic: str, rows: list[tuple[str, Queues]], claimant: Claimant = UNGUARDED
    ) -> None:
        known = any(topic in broker.topics for broker in self.brokers.values())
        names = [name for name, _ in rows]
        unknown = next((i for i, name in enumerate(names) if name not in self.brokers), len(rows))
        if unknown < len(rows) and not known:
            return
        latest = {name: broker.topics.get(topic) for name, broker in self.brokers.items()}
        for name, queues in rows[:unknown]:
            registrants = {member.registrant for member in self.brokers[name].addrs.values()}
            master = self.brokers[name].addrs.get(MASTER)
            if master is not None and master.registrant.startswith("principal:"):
                registrants = {master.registrant}
            if latest[name] == queues or claimant.registrant in registrants:
                continue
            if claimant.guard and any(one.startswith("principal:") for one in registrants):
                raise Owned
            latest[name] = queues
        for name, queues in rows[:unknown]:
            self.brokers[name].topics[topic] = queues

    # -- what readers see

    def route(self, topic: str) -> dict[str, tuple[dict[int, str], Queues]]:
        return {
            name: (broker.living(), broker.topics[topic])
            for name, broker in self.brokers.items()
            if topic in broker.topics and broker.living()
        }

    def cluster_info(self) -> tuple[dict[str, dict[int, str]], dict[str, set[str]]]:
        living = {name: broker.living() for name, broker in self.brokers.items() if broker.living()}
        listed: dict[str, set[str]] = {}
        for name in living:
            for cluster in self.brokers[name].clusters:
                listed.setdefault(cluster, set()).add(name)
        return living, listed

    def topics(self, cluster: str = "") -> set[str]:
        return {
            topic
            for broker in self.brokers.values()
            if not cluster or cluster in broker.clusters
            for topic in broker.topics
        }

    # -- how members leave

    def _places(self, member: ModelMember) -> Iterator[tuple[ModelBroker, int]]:
        for broker in list(self.brokers.values()):
            for number, one in list(broker.addrs.items()):
                if one is member:
                    yield broker, number

    def _record_lapses(self, broker: ModelBroker, spared: ModelMember | None) -> None:
        for member in list(broker.addrs.values()):
            if member.lapsed and member is not spared:
                self._leave(member)

    def _leave(self, member: ModelMember, *, given_away: bool = False) -> None:
        for broker, number in list(self._places(member)):
            self._vacate(broker, number, given_away=given_away)
        self.members.pop((member.cluster, member.address), None)

    def _vacate(self, broker: ModelBroker, number: int, *, given_away: bool = False) -> None:
        """Take a member's place; with one that its successor takes the group is no smaller."""
        member = broker.addrs.pop(number)
        broker.reduced |= not given_away
        if not any(True for _ in self._places(member)):
            self.members.pop((member.cluster, member.address), None)

    def _end(self) -> None:
        """Names without members go with all they had; groups that lost their master lose the write bit."""
        self.brokers = {name: broker for name, broker in self.brokers.items() if broker.addrs}
        for broker in self.brokers.values():
            if broker.reduced and broker.acting and MASTER not in broker.addrs:
                broker.pending = True
            broker.reduced = False
        if not self.later:
            self.clear_write()

    def clear_write(self) -> None:
        for broker in self.brokers.values():
            if broker.pending and MASTER not in broker.addrs:
                for topic, (read, write, perm, flag) in broker.topics.items():
                    broker.topics[topic] = (read, write, perm & ~PERM_WRITE, flag)
            broker.pending = False


def may_take(member: ModelMember, claimant: Claimant) -> bool:
    """Whether a request may have the place of a living member, or give it another one."""
    is_own = member.registrant == claimant.registrant or comes_home(member, claimant)
    return not claimant.guard or is_own or (claimant.takes and member.registrant.startswith("host:"))


def comes_home(member: ModelMember, claimant: Claimant) -> bool:
    """Whether it has the address of the claimant's host, and another host registered it."""
    last, home = member.registrant, claimant.comes_from
    is_anothers = last.startswith("host:") and last != home
    return claimant.guard and is_anothers and home == f"host:{member.address.rpartition(':')[0]}"


def may_renew(member: ModelMember, claimant: Claimant) -> bool:
    is_own = member.registrant == claimant.registrant
    return not claimant.guard or is_own or not member.registrant.startswith("principal:")


def next_registrant(member: ModelMember, claimant: Claimant) -> str:
    """Of a member that the claimant registers: a host's is not another host's before its connections are gone, and
    never with its own address."""
    last, new = member.registrant, claimant.registrant
    if last in ("", new):
        return new
    if new.startswith("principal:"):
        return last if claimant.guard and not claimant.takes else new
    return last if is_of_own_host(member) or last.removeprefix("host:") in member.owners.values() else new


def is_of_own_host(member: ModelMember) -> bool:
    return member.registrant == f"host:{member.address.rpartition(':')[0]}"
