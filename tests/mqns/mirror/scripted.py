"""Name servers whose answers a test sets, and a target that holds what a mirror writes."""

from collections.abc import Sequence
from typing import Any, cast

from mqns.errors import ConnectError, RemotingError, ResponseError
from mqns.mirror.source import Source, T
from mqns.mirror.target import MirroredMember, OwnRegistration, Refused, Registration
from mqns.remoting.call import Call
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.kv_table import KVTable
from rocketmq_remoting.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rocketmq_remoting.topic_list import TopicList

RATE = 1000.0


class Java:
    """One name server: `brokers` by name, `topics` as `{topic: {broker: perm}}`. Each is as it is when it is asked."""

    def __init__(self, address: str = "10.0.0.1:9876") -> None:
        self.address = address
        self.brokers: dict[str, BrokerData] = {}
        self.topics: dict[str, dict[str, int]] = {}
        self.kv: dict[str, dict[str, str]] = {}
        self.static: set[str] = set()
        self.asked: list[tuple[int, str]] = []
        self.down = False
        self.connects = 1
        self.refusals: dict[int, int] = {}
        self.started: str | None = None

    def source(self, *, rate: float = RATE, grace_s: float = 0.0) -> Source:
        return Source(
            self.address,
            self,
            lambda: self.connects,
            service_start=self.service_start,
            why=self.why,
            rate=rate,
            grace_s=grace_s,
        )

    async def service_start(self) -> str | None:
        """As a redis-namesrv says it where `started` is set."""
        return self.started

    async def why(self, error: RemotingError) -> str:
        return error.reason

    def has(
        self, name: str, *ids: int, at: str = "10.0.1", cluster: str = "c1", acting: bool = False
    ) -> None:
        addrs = {number: f"{at}.{number + 1}:{10_000 + ord(name[-1])}" for number in ids}
        self.brokers[name] = BrokerData(cluster, name, addrs, acting)

    def restart(self) -> None:
        """Be a process that no broker has registered with yet."""
        self.brokers, self.topics = {}, {}
        self.connects += 1

    def routes_asked(self) -> list[str]:
        """Return the topics whose routes were asked for since the last call."""
        topics = [what for code, what in self.asked if code == RequestCode.GET_ROUTEINFO_BY_TOPIC]
        self.asked.clear()
        return topics

    async def call(self, call: Call[T]) -> T:
        code = RequestCode(call.request.code)
        fields = call.request.ext or {}
        self.asked.append((code, next(iter(fields.values()), "")))
        if self.down:
            raise ConnectError(self.address, "not connected")
        if code in self.refusals:
            raise ResponseError(self.address, self.refusals[code], "refused")
        return cast(T, self._answer(code, fields))

    def _answer(self, code: RequestCode, fields: Any) -> object:
        if code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return ClusterInfo(dict(self.brokers), {})
        if code == RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
            return TopicList(tuple(self.topics))
        if code == RequestCode.GET_TOPICS_BY_CLUSTER:
            return TopicList(tuple(self.topics) if fields["cluster"] == "c1" else ())
        if code == RequestCode.GET_KVLIST_BY_NAMESPACE:
            table = self.kv.get(fields["namespace"])
            return None if table is None else KVTable(dict(table))
        assert code == RequestCode.GET_ROUTEINFO_BY_TOPIC, code  # and none that changes a lease
        return self._route(fields["topic"])

    def _route(self, topic: str) -> TopicRouteData | None:
        perms = self.topics.get(topic)
        if perms is None:
            return None
        queues = tuple(QueueData(name, 4, 4, perm, 0) for name, perm in perms.items())
        infos = {name: TopicQueueMappingInfo(topic, name, 1, {0: 0}) for name in perms}
        return TopicRouteData((), queues, {}, None, infos if topic in self.static else None)


class Ours:
    """The target: what is mirrored, as registered, and what registered itself."""

    def __init__(self) -> None:
        self.members: dict[MirroredMember, Registration] = {}
        self.own: set[MirroredMember] = set()
        self.kv: dict[tuple[str, str], str] = {}
        self.writes: list[str] = []
        self.down = False
        self.refuses: set[str] = set()
        self.started = "1795255834512"

    def perms(self, name: str) -> dict[str, int]:
        """Return the permissions of a broker's topics."""
        return {
            topic.topic_name: topic.perm
            for member, registration in self.members.items()
            if member.broker_name == name
            for topic in registration.topics
        }

    def addresses(self, name: str) -> dict[int, str]:
        return {m.broker_id: m.broker_addr for m in sorted(self.members) if m.broker_name == name}

    def register_itself(self, member: MirroredMember) -> None:
        self.members.pop(member, None)
        self.own.add(member)

    def written(self) -> list[str]:
        """Return what was written since the last call."""
        writes, self.writes = self.writes, []
        return writes

    async def service_start(self) -> str:
        self._expect_up()
        return self.started

    async def renew(self, members: Sequence[MirroredMember]) -> Sequence[str]:
        self._expect_up()
        states = {**dict.fromkeys(self.members, "renewed"), **dict.fromkeys(self.own, "ownRegistration")}
        return [states.get(member, "unknown") for member in members]

    async def mirrored(self, mark: str) -> Sequence[MirroredMember]:
        self._expect_up()
        return [member for member, body in self.members.items() if body.mirrored_from == mark]

    async def register(self, registration: Registration) -> bool:
        self._expect_up()
        r = registration
        member = MirroredMember(r.cluster, r.broker_name, r.broker_id, r.broker_addr)
        self.writes.append(f"register {r.broker_name}/{r.broker_id} {len(r.topics)}")
        if member in self.own:
            raise OwnRegistration("registered itself")
        if r.broker_name in self.refuses:
            raise Refused("more than maxTopics")
        for other in [other for other in self.members if _has_its_place(other, member)]:
            del self.members[other]
        changed = self.members.get(member) != registration
        self.members[member] = registration
        return changed

    async def remove(self, member: MirroredMember, mark: str) -> bool:
        self._expect_up()
        self.writes.append(f"remove {member.broker_name}/{member.broker_id}")
        return self.members.pop(member, None) is not None

    async def set_kv(self, namespace: str, key: str, value: str | None) -> bool:
        self.writes.append(f"kv {key}={value}")
        before = self.kv.pop((namespace, key), None)
        if value is not None:
            self.kv[namespace, key] = value
        return before != value

    def _expect_up(self) -> None:
        if self.down:
            raise RemotingError("http://ours", "no answer")


def _has_its_place(other: MirroredMember, member: MirroredMember) -> bool:
    return other != member and (other.broker_name, other.broker_id) == (member.broker_name, member.broker_id)
