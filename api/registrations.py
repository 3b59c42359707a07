"""Brokers that register by HTTP, under the rules of the wire (103, 904, 104), and their write permission (205, 327)."""

import time
from typing import Annotated

from apiflask import APIBlueprint
from pydantic import Field

from api.brokers import known
from api.name_server import act, name_server
from api.problems import Problem
from api.shapes import Address, Body, DataVersionAnswer, Int64, Many, Name, Query, TopicNumbers, Written
from registry.beats import beat
from registry.errors import BrokerNotFound
from registry.options import Options
from registry.registration import TIMEOUT_MAX_MS, Registration, register
from registry.removal import unregister
from registry.rewrite import add_write_perm, wipe_write_perm
from remoting.codes import RequestCode
from remoting.data_version import DataVersion
from remoting.registration import RegisterBrokerBody, encode_register_broker_body
from remoting.topic_config import TopicConfig
from remoting.version import CURRENT

bp = APIBlueprint("registrations", __name__, url_prefix="/v1/brokers")


class DataVersionBody(Body):
    """Equal versions mean equal topics. `timestamp` is in ms."""

    state_version: Int64 = 0
    timestamp: Int64
    counter: Int64 = 0

    def value(self) -> DataVersion:
        return DataVersion(self.state_version, self.timestamp, self.counter)


class TopicBody(TopicNumbers):
    topic_name: Name

    def value(self) -> TopicConfig:
        return TopicConfig(
            self.topic_name, self.read_queue_nums, self.write_queue_nums, self.perm, self.topic_sys_flag
        )


class RegistrationBody(Body):
    """A broker, as REGISTER_BROKER has it.

    Without `dataVersion` every registration counts as changed. `filterServers` null leaves them as they are.
    `enableActingMaster` null is a broker before 5.0, whose slaves register no topics."""

    cluster: Name
    broker_name: Name
    broker_addr: Address
    broker_id: Int64
    ha_server_addr: Address | None = None
    zone_name: Name | None = None
    enable_acting_master: bool | None = None
    heartbeat_timeout_millis: Annotated[int, Field(ge=1, le=TIMEOUT_MAX_MS)] | None = None
    data_version: DataVersionBody | None = None
    topics: Many[TopicBody] = ()
    filter_servers: Many[Address] | None = ()

    def value(self, options: Options) -> Registration:
        version = (
            self.data_version.value() if self.data_version else DataVersion(0, int(time.time() * 1000), 0)
        )
        topics = {topic.topic_name: topic.value() for topic in self.topics}
        body = RegisterBrokerBody(version, topics, frozenset(topics), self.filter_servers)
        return Registration(
            cluster=self.cluster,
            name=self.broker_name,
            address=self.broker_addr,
            id=self.broker_id,
            ha=self.ha_server_addr,
            zone=self.zone_name,
            acting=self.enable_acting_master,
            timeout_ms=self.heartbeat_timeout_millis or options.broker_timeout_millis,
            version=CURRENT,
            body=encode_register_broker_body(body, version=CURRENT, compressed=False),
        )


class RegistrationAnswer(Written):
    """`masterAddr` and `haServerAddr` for a slave whose master lives; `orderTopics` when such a KV namespace exists."""

    master_addr: str | None
    ha_server_addr: str | None
    order_topics: dict[str, str] | None


class MemberBody(Body):
    cluster: Name
    broker_addr: Address


class BeatAnswer(Written):
    """The data version that was registered."""

    data_version: DataVersionAnswer | None


class MemberQuery(Query):
    cluster: Name
    broker_addr: Address


class PermissionBody(Body):
    writable: bool


class PermissionAnswer(Written):
    """`topicCount` is how many topics the broker has, whether their permission changed or not."""

    topic_count: int


@bp.post("")
@bp.input(RegistrationBody)
@bp.output(RegistrationAnswer)
@bp.doc(
    responses={
        409: "The registry refuses this broker",
        503: "The store is away, or the broker busy: try again",
    }
)
def register_broker(json_data: RegistrationBody) -> RegistrationAnswer:
    """Register a broker, or renew its lease

    It stays as long as it registers or beats again within its time-out."""
    server = name_server()
    options = server.options()
    done = server.run(
        register(
            server.keys,
            json_data.value(options),
            act(),
            delete_missing=options.delete_topic_with_broker_registration,
            told_as=_told_as(RequestCode.REGISTER_BROKER),
        )
    )
    if done.refused:
        raise Problem(409, "registration-refused", "another address holds this id with a higher stateVersion")
    return RegistrationAnswer(
        event_id=done.event_id or None,
        master_addr=done.master_address,
        ha_server_addr=done.ha_address,
        order_topics=done.order_table if options.return_order_topic_config_to_broker else None,
    )


@bp.post("/<name>/heartbeat")
@bp.input(MemberBody)
@bp.output(BeatAnswer)
@bp.doc(responses=[404])
def heartbeat(name: str, json_data: MemberBody) -> BeatAnswer:
    """Renew the lease of a registered broker

    A beat registers nobody: a broker that is unknown has to register again."""
    server = name_server()
    _expect(name, json_data.cluster, json_data.broker_addr)
    told_as = _told_as(RequestCode.BROKER_HEARTBEAT)
    done = server.run(beat(server.keys, json_data.cluster, json_data.broker_addr, act(), told_as=told_as))
    if done.version is None:
        raise BrokerNotFound(f"{json_data.broker_addr} is not registered in cluster {json_data.cluster!r}")
    return BeatAnswer(event_id=done.event_id or None, data_version=DataVersionAnswer.of(done.version))


@bp.delete("/<name>")
@bp.input(MemberQuery, location="query")
@bp.output(Written)
@bp.doc(responses=[404])
def unregister_broker(name: str, query_data: MemberQuery) -> Written:
    """Unregister one address of a broker"""
    server = name_server()
    _expect(name, query_data.cluster, query_data.broker_addr)
    done = server.run(unregister(server.keys, query_data.cluster, query_data.broker_addr, name, None, act()))
    return Written.of(done.event_id)


@bp.post("/<name>/write-permission")
@bp.input(PermissionBody)
@bp.output(PermissionAnswer)
@bp.doc(responses=[404])
def write_permission(name: str, json_data: PermissionBody) -> PermissionAnswer:
    """Take the write permission from all topics of a broker, or give read and write back

    It holds until the broker registers topics that changed."""
    server = name_server()
    known(name)
    change = add_write_perm if json_data.writable else wipe_write_perm
    done = server.run(change(server.keys, name, act()))
    return PermissionAnswer(event_id=done.event_id or None, topic_count=done.count)


def _told_as(code: RequestCode) -> int | None:
    """As `worker.answer.Request.told_as`."""
    return code if name_server().given.events_heartbeats else None


def _expect(name: str, cluster: str, address: str) -> None:
    """The wire looks at cluster and address only; a path that names a broker has to name that member's."""
    if not any((one.cluster, one.address) == (cluster, address) for one in known(name).members):
        raise BrokerNotFound(f"{address} of cluster {cluster!r} is no member of broker {name!r}")
