"""Registration of brokers by HTTP (103, 904, 104), and their write permission (205, 327).

The wire's rules hold but for one: a first registration may have a single topic."""

import time
from typing import Annotated

from apiflask import APIBlueprint
from flask import Response, request
from pydantic import Field

from api.brokers import broker_of
from api.counters import COUNTERS
from api.drains import DrainShown, drains_of
from api.dry_run import dry_run
from api.name_server import claimant, host, name_server, origin
from api.problems import Problem
from api.registration_outcomes import count_outcome, outcome_is
from api.shapes import Address, Body, DataVersionAnswer, Int64, Many, Name, Query, TopicNumbers, Written
from registry.errors import BrokerNotFound
from registry.members import TIMEOUT_MAX_MS
from registry.options.catalogue import Options
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.heartbeat import renew_lease
from registry.registration.register import Registration, register
from registry.removal import unregister
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT

bp = APIBlueprint("registrations", __name__, url_prefix="/v1/brokers")


@bp.after_request
def count(response: Response) -> Response:
    """Count a registration, whatever its answer is."""
    return (
        count_outcome(response) if request.endpoint == f"{bp.name}.{register_broker.__name__}" else response
    )


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
            single_topic=True,
        )


class RegistrationAnswer(Written):
    """`masterAddr` and `haServerAddr` for a slave whose master lives; `orderTopics` when such a KV namespace exists."""

    master_addr: str | None
    ha_server_addr: str | None
    order_topics: dict[str, str] | None


class MemberBody(Body):
    """A member that is registered, whatever its names are."""

    cluster: str
    broker_addr: str


class HeartbeatAnswer(Written):
    """The data version that was registered."""

    data_version: DataVersionAnswer | None


class MemberQuery(Query):
    """A member that is registered, whatever its names are."""

    cluster: str
    broker_addr: str


class PermissionBody(Body):
    writable: bool


class PermissionAnswer(Written):
    """`topicCount` is how many topics the broker has, whether their permission changed or not. While it is drained,
    which `drain` says, routes show no write permission whatever was given."""

    topic_count: int
    drain: DrainShown | None


@bp.post("")
@bp.input(RegistrationBody)
@bp.output(RegistrationAnswer)
@bp.doc(
    operation_id="registerBroker",
    responses={
        403: "It is for the owner of a living broker",
        409: "The registry refuses this broker",
        503: "The store is away, or the broker busy: try again",
    },
)
def register_broker(json_data: RegistrationBody) -> RegistrationAnswer:
    """Register a broker, or renew its lease

    It stays as long as it registers again or sends a heartbeat within its timeout."""
    server = name_server()
    options = server.options()
    registered = server.run(
        register(
            server.keys,
            json_data.value(options),
            origin(),
            host=host(),
            delete_missing=options.delete_topic_with_broker_registration,
            event_code=_event_code(RequestCode.REGISTER_BROKER),
            limits=server.limits,
            claimant=claimant(),
        )
    )
    outcome_is(registered.outcome)
    if registered.refused:
        raise Problem(409, "registration-refused", "another address holds this id with a higher stateVersion")
    return RegistrationAnswer(
        event_id=registered.event_id or None,
        master_addr=registered.master_address,
        ha_server_addr=registered.ha_address,
        order_topics=registered.order_topics(options),
    )


@bp.post("/<name>/heartbeat")
@bp.input(MemberBody)
@bp.output(HeartbeatAnswer)
@bp.doc(operation_id="sendHeartbeat", responses=[403, 404])
def heartbeat(name: str, json_data: MemberBody) -> HeartbeatAnswer:
    """Renew the lease of a registered broker

    A heartbeat registers no broker: one that is unknown has to register again."""
    server = name_server()
    _expect(name, json_data.cluster, json_data.broker_addr)
    event_code = _event_code(RequestCode.BROKER_HEARTBEAT)
    renewed = server.run(
        renew_lease(
            server.keys,
            json_data.cluster,
            json_data.broker_addr,
            origin(),
            event_code=event_code,
            claimant=claimant(),
        )
    )
    if renewed.version is None:
        raise BrokerNotFound(f"{json_data.broker_addr} is not registered in cluster {json_data.cluster!r}")
    if dry_run() is None:
        COUNTERS.heartbeat()
    return HeartbeatAnswer(
        event_id=renewed.event_id or None, data_version=DataVersionAnswer.of(renewed.version)
    )


@bp.delete("/<name>")
@bp.input(MemberQuery, location="query")
@bp.output(Written)
@bp.doc(operation_id="unregisterBroker", responses=[403, 404])
def unregister_broker(name: str, query_data: MemberQuery) -> Written:
    """Unregister one address of a broker"""
    server = name_server()
    _expect(name, query_data.cluster, query_data.broker_addr)
    removed = server.run(
        unregister(
            server.keys,
            query_data.cluster,
            query_data.broker_addr,
            name,
            None,
            origin(),
            claimant=claimant(),
        )
    )
    return Written.of(removed.event_id)


@bp.post("/<name>/write-permission")
@bp.input(PermissionBody)
@bp.output(PermissionAnswer)
@bp.doc(operation_id="setWritePermission", responses=[404])
def write_permission(name: str, json_data: PermissionBody) -> PermissionAnswer:
    """Take the write permission from all topics of a broker, or give read and write back

    It holds until the broker registers topics that changed. It ends no drain of the broker."""
    server = name_server()
    broker_of(name)  # or 404
    change = add_write_perm if json_data.writable else wipe_write_perm
    changed = server.run(change(server.keys, name, origin()))
    drain = drains_of((name,)).get(name)
    return PermissionAnswer(event_id=changed.event_id or None, topic_count=changed.count, drain=drain)


def _event_code(code: RequestCode) -> int | None:
    """Return the code of the request, None unless eventsHeartbeats is on."""
    return code if name_server().given.events_heartbeats else None


def _expect(name: str, cluster: str, address: str) -> None:
    """Raise BrokerNotFound unless the address is a member of that broker: the scripts read cluster and address only."""
    if not any((member.cluster, member.address) == (cluster, address) for member in broker_of(name).members):
        raise BrokerNotFound(f"{address} of cluster {cluster!r} is no member of broker {name!r}")
