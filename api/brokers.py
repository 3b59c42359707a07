"""Brokers with their members and leases, living or not."""

from typing import Literal

from apiflask import APIBlueprint

from api.drains import DrainShown, drains_of
from api.name_server import name_server
from api.paging import PageQuery, page
from api.shapes import Answer, DataVersionAnswer
from registry.errors import BrokerNotFound
from registry.members import Broker, Lease, Member, broker_names
from registry.members import brokers as brokers_named

bp = APIBlueprint("brokers", __name__, url_prefix="/v1/brokers")


class LeaseAnswer(Answer):
    """Times by the Redis clock, in ms. `held`: it is over, but kept until `keptUntilMillis` by a hold.
    `overdue`: routes leave the member out, its removal is not recorded yet."""

    state: Literal["living", "held", "overdue"]
    age_millis: int
    remaining_millis: int
    end_millis: int
    kept_until_millis: int
    timeout_millis: int

    @classmethod
    def of(cls, lease: Lease) -> "LeaseAnswer":
        return cls(
            state=lease.state,
            age_millis=lease.age_ms,
            remaining_millis=lease.remaining_ms,
            end_millis=lease.end_ms,
            kept_until_millis=lease.kept_until_ms,
            timeout_millis=lease.timeout_ms,
        )


class MemberAnswer(Answer):
    """One address. `owners` are the connections it registered over, `<worker>/<connection>`; `mirroredFrom` are the
    name servers that a mirror read it from, null of one that registered itself."""

    cluster: str
    broker_id: int
    broker_addr: str
    ha_server_addr: str | None
    data_version: DataVersionAnswer | None
    filter_servers: tuple[str, ...]
    since_millis: int
    owners: tuple[str, ...]
    mirrored_from: str | None
    lease: LeaseAnswer

    @classmethod
    def of(cls, member: Member) -> "MemberAnswer":
        return cls(
            cluster=member.cluster,
            broker_id=member.id,
            broker_addr=member.address,
            ha_server_addr=member.ha,
            data_version=DataVersionAnswer.of(member.version),
            filter_servers=member.filters,
            since_millis=member.since_ms,
            owners=member.owners,
            mirrored_from=member.mirrored,
            lease=LeaseAnswer.of(member.lease),
        )


class BrokerAnswer(Answer):
    """All members of a broker name; `clusters` are those that list it, `cluster` the first of them; `host` is where it
    was first registered from, an IPv6 one with its /64, null if unknown; `drain` is that in force, null without."""

    broker_name: str
    cluster: str
    clusters: tuple[str, ...]
    zone_name: str | None
    enable_acting_master: bool
    epoch: int
    host: str | None
    drain: DrainShown | None
    members: tuple[MemberAnswer, ...]

    @classmethod
    def of(cls, broker: Broker, drain: DrainShown | None) -> "BrokerAnswer":
        return cls(
            broker_name=broker.name,
            cluster=broker.cluster,
            clusters=broker.clusters,
            zone_name=broker.zone,
            enable_acting_master=broker.acting_master,
            epoch=broker.epoch,
            host=broker.host,
            drain=drain,
            members=tuple(MemberAnswer.of(member) for member in broker.members),
        )


class BrokersQuery(PageQuery):
    """`cluster` leaves only brokers that it lists, `prefix` only names that begin so."""

    cluster: str | None = None
    prefix: str = ""


class Brokers(Answer):
    brokers: tuple[BrokerAnswer, ...]
    next: str | None


@bp.get("")
@bp.input(BrokersQuery, location="query")
@bp.output(Brokers)
@bp.doc(operation_id="listBrokers")
def brokers(query_data: BrokersQuery) -> Brokers:
    """Brokers by name"""
    server = name_server()
    listed_names = broker_names(server.keys, query_data.cluster, query_data.prefix)
    names, after = page(server.run(listed_names), query_data)
    listed = server.run(brokers_named(server.keys, names))
    drains = drains_of(names)
    return Brokers(
        brokers=tuple(BrokerAnswer.of(broker, drains.get(broker.name)) for broker in listed), next=after
    )


@bp.get("/<name>")
@bp.output(BrokerAnswer)
@bp.doc(operation_id="getBroker", responses=[404])
def broker(name: str) -> BrokerAnswer:
    """One broker"""
    return BrokerAnswer.of(broker_of(name), drains_of((name,)).get(name))


def broker_of(name: str) -> Broker:
    """Return the broker of that name. Raises BrokerNotFound."""
    server = name_server()
    for broker in server.run(brokers_named(server.keys, (name,))):
        return broker
    raise BrokerNotFound(f"no broker {name!r}")
