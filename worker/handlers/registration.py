"""REGISTER_BROKER (103)."""

from collections.abc import Sequence

from msgspec.structs import replace
from zlib_ng.zlib_ng import crc32

from access.classes import AccessClass
from access.patterns import all_match
from registry.errors import StoreUnavailable
from registry.long_work.time_slices import cooperatively
from registry.members import TIMEOUT_MAX_MS
from registry.options.catalogue import Options
from registry.plans import Plan
from registry.registration.body import BodyReader
from registry.registration.cache import RegistrationCache
from registry.registration.register import Registration, register
from registry.registration.registered import Registered
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.registration import as_body_crc32
from worker.arguments import boolean, integer
from worker.dispatch import denied, failure, handles
from worker.reply import Handled, Reply, Request, TopicLimits

BAD_CHECKSUM = Reply(ResponseCode.SYSTEM_ERROR, remark="crc32 not match", ext={}, refusal="crc")
REQUIRED = ("brokerName", "brokerAddr", "clusterName")
UNSURE_MOST = 16
"""Members of a connection, with one of which it is not known whether the store registered it."""


@handles(RequestCode.REGISTER_BROKER)
def register_broker(request: Request) -> Handled:
    """Checked in RocketMQ's order: checksum, required fields (Java stores nulls), body, the registry's rules."""
    command = request.command
    expected = integer(command, "bodyCrc32", bits=32)
    crc = crc32(command.body) if expected else None
    if crc is not None and expected != as_body_crc32(crc):
        request.unreadable("crc")
        return BAD_CHECKSUM
    for field in REQUIRED:
        if request.get(field) is None:
            return failure(f"the custom field <{field}> is null", "field")
    broker_id = integer(command, "brokerId")
    if broker_id is None:
        return failure("the custom field <brokerId> is null or not a number", "field")
    return _registered(request, _registration(request, broker_id, crc))


def _registration(request: Request, broker_id: int, crc: int | None) -> Registration:
    command = request.command
    timeout_ms = integer(command, "heartbeatTimeoutMillis")
    if timeout_ms is None:
        timeout_ms = request.options.broker_timeout_millis
    return Registration(
        cluster=request.get("clusterName") or "",
        name=request.get("brokerName") or "",
        address=request.get("brokerAddr") or "",
        id=broker_id,
        ha=request.get("haServerAddr"),
        zone=request.get("__ZONE_NAME"),
        acting=boolean(command, "enableActingMaster"),
        timeout_ms=min(max(timeout_ms, 1), TIMEOUT_MAX_MS),
        version=max(command.version, 0),
        compressed=boolean(command, "compressed") or False,
        body=command.body,
        crc=crc,
    )


def _may_have_registered(error: Exception, request: Request) -> bool:
    """Return whether the store may have registered the member all the same, so that the connection's end is to release
    it. That is kept of a few only: while the store is away, a peer may make up any number."""
    return isinstance(error, StoreUnavailable) and len(request.peer.registered) <= UNSURE_MOST


def _are_within(limits: TopicLimits, names: Sequence[str]) -> Plan[bool]:
    for patterns in limits.ways:
        if (yield from cooperatively(all_match(patterns, names))):
            return True
    return False


def _registered(request: Request, registration: Registration) -> Plan[Reply]:
    is_beyond = False
    if request.topics is not None:
        table = yield from BodyReader(registration).read()
        names = (*table.topics, *table.mapping_infos)
        is_beyond = not (yield from _are_within(request.topics, names))
        if is_beyond and request.topics.refuses():
            return denied(request, AccessClass.BROKER, "topics within the limits of its principal")
    member, options = registration.member, request.options
    is_first = request.registers(member)
    try:
        done = yield from register(
            request.keys,
            registration,
            request.origin,
            owner=request.owner,
            host=request.peer.host,
            delete_missing=options.delete_topic_with_broker_registration,
            registration_cache=request.registration_cache,
            event_code=request.event_code,
            limits=request.limits,
            claimant=request.claimant,
        )
    except Exception as error:
        if is_first and not _may_have_registered(error, request):
            request.refused(member)
        if isinstance(error, BodyError):
            request.unreadable("body")
            return failure(f"Failed to decode RegisterBrokerBody: {error}", "body")
        raise
    if not done.refused:
        request.registers(member)  # one that came before may have been refused meanwhile
    elif is_first:
        request.refused(member)
    renewal = None if is_beyond else done.renewal  # what is only observed is judged each time
    if renewal is not None and request.topics is not None:
        renewal = replace(renewal, context=None)  # so is each other table of a principal with limits
    return replace(reply_of(done, options, request.registration_cache), renewal=renewal)


def reply_of(done: Registered, options: Options, cache: RegistrationCache) -> Reply:
    """Return the reply to a registration that was carried out, without how it is repeated."""
    addresses = {"haServerAddr": done.ha_address, "masterAddr": done.master_address}
    ext = {name: address for name, address in addresses.items() if address is not None}
    order_topics = done.order_topics(options)
    body = b"" if order_topics is None else cache.order_body(order_topics)
    return Reply(ext=ext, body=body, event_id=done.event_id, outcome=done.outcome)
