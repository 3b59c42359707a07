"""Members that a mirror of other name servers keeps registered by HTTP (docs/http-api.md, Mirrored brokers).

What a broker registers itself wins over it, always."""

from typing import Annotated

from apiflask import APIBlueprint
from pydantic import Field

from api.name_server import claimant, host, name_server, origin
from api.registrations import TopicBody
from api.shapes import Address, Answer, Body, Int64, Many, Name, Query, Written
from registry.mirrored import NO_VERSION, MirroredMember, MirrorState, renew_mirrored
from registry.registration.register import Registration, register
from registry.removal import remove_mirrored
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.version import CURRENT

bp = APIBlueprint("mirror", __name__, url_prefix="/v1/mirrored-brokers")
MEMBERS_MOST = 1000


class MirroredBody(Body):
    """A member as other name servers answer it, with all topics that its broker has there; none of a slave beside its
    master. `mirroredFrom` names these name servers."""

    cluster: Name
    broker_name: Name
    broker_addr: Address
    broker_id: Int64
    mirrored_from: Name
    zone_name: Name | None = None
    enable_acting_master: bool = False
    topics: Many[TopicBody] = ()
    filter_servers: Many[Address] = ()

    def value(self, timeout_ms: int) -> Registration:
        topics = {topic.topic_name: topic.value() for topic in self.topics}
        body = RegisterBrokerBody(NO_VERSION, topics, frozenset(topics), self.filter_servers)
        return Registration(
            cluster=self.cluster,
            name=self.broker_name,
            address=self.broker_addr,
            id=self.broker_id,
            zone=self.zone_name,
            acting=self.enable_acting_master,
            timeout_ms=timeout_ms,
            version=CURRENT,
            body=encode_register_broker_body(body, version=CURRENT, compressed=False),
            single_topic=True,
            mirrored=self.mirrored_from,
        )


class MirroredMemberBody(Body):
    """A member that a mirror has registered, whatever its names are."""

    cluster: str
    broker_name: str
    broker_id: int
    broker_addr: str

    def value(self) -> MirroredMember:
        return MirroredMember(self.cluster, self.broker_name, self.broker_id, self.broker_addr)


class SeenBody(Body):
    members: Annotated[Many[MirroredMemberBody], Field(max_length=MEMBERS_MOST)]


class SeenAnswer(Answer):
    """The state of each member, in the order given: `renewed`; `unknown`, which is to be registered; `ownRegistration`:
    it registered itself, and is not the mirror's."""

    states: tuple[MirrorState, ...]


class MirroredQuery(Query):
    """A mirrored member, and the name servers that it is mirrored from."""

    cluster: str
    broker_addr: str
    mirrored_from: str


@bp.post("")
@bp.input(MirroredBody)
@bp.output(Written)
@bp.doc(
    operation_id="putMirroredBroker",
    responses={
        403: "It is for the owner of a living broker",
        409: "The broker registered itself, or another mirror has it, or it is beyond a limit",
        503: "The store is away, or the broker busy: try again",
    },
)
def register_mirrored(json_data: MirroredBody) -> Written:
    """Register a broker that other name servers have, or what it has become there

    It stays as long as it is renewed within `brokerTimeoutMillis`, and until the broker registers itself. Topics that
    are not given are removed from the broker."""
    server = name_server()
    options = server.options()
    registered = server.run(
        register(
            server.keys,
            json_data.value(options.broker_timeout_millis),
            origin(),
            host=host(),
            delete_missing=True,
            limits=server.limits,
            claimant=claimant(),
        )
    )
    return Written.of(registered.event_id)


@bp.post("/heartbeats")
@bp.input(SeenBody)
@bp.output(SeenAnswer)
@bp.doc(operation_id="sendMirroredHeartbeats")
def renew_mirrored_brokers(json_data: SeenBody) -> SeenAnswer:
    """Renew the leases of mirrored brokers, which other name servers still have"""
    server = name_server()
    members = [member.value() for member in json_data.members]
    return SeenAnswer(states=server.run(renew_mirrored(server.keys, members)))


@bp.delete("")
@bp.input(MirroredQuery, location="query")
@bp.output(Written)
@bp.doc(operation_id="deleteMirroredBroker")
def remove_mirrored_broker(query_data: MirroredQuery) -> Written:
    """Remove a mirrored broker

    One that registered itself, or that is mirrored from other name servers, stays."""
    server = name_server()
    removed = server.run(
        remove_mirrored(
            server.keys, query_data.cluster, query_data.broker_addr, query_data.mirrored_from, origin()
        )
    )
    return Written.of(removed.event_id)
