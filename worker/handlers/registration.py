"""REGISTER_BROKER (103)."""

from registry.plans import Plan
from registry.registration import TIMEOUT_MAX_MS, Registration, register
from remoting.codes import RequestCode, ResponseCode
from remoting.errors import BodyError
from remoting.kv_table import KVTable, encode_kv_table
from remoting.registration import body_crc32
from worker.answer import Answer, Handled, Request
from worker.arguments import boolean, integer
from worker.dispatch import failure, handles

BAD_CHECKSUM = Answer(ResponseCode.SYSTEM_ERROR, remark="crc32 not match", ext={})
REQUIRED = ("brokerName", "brokerAddr", "clusterName")


@handles(RequestCode.REGISTER_BROKER)
def register_broker(request: Request) -> Handled:
    """Checked in RocketMQ's order: checksum, required fields (Java stores nulls), body, the registry's rules."""
    command = request.command
    expected = integer(command, "bodyCrc32", bits=32)
    if expected and expected != body_crc32(command.body):
        return BAD_CHECKSUM
    for field in REQUIRED:
        if request.get(field) is None:
            return failure(f"the custom field <{field}> is null")
    broker_id = integer(command, "brokerId")
    if broker_id is None:
        return failure("the custom field <brokerId> is null or not a number")
    return _registered(request, _registration(request, broker_id))


def _registration(request: Request, broker_id: int) -> Registration:
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
    )


def _registered(request: Request, registration: Registration) -> Plan[Answer]:
    request.registers(registration.member)
    options = request.options
    try:
        done = yield from register(
            request.keys,
            registration,
            request.act,
            owner=request.owner,
            delete_missing=options.delete_topic_with_broker_registration,
            registrar=request.registrar,
            told_as=request.told_as,
        )
    except BodyError as error:
        return failure(f"Failed to decode RegisterBrokerBody: {error}")
    found = {"haServerAddr": done.ha_address, "masterAddr": done.master_address}
    body = b""
    if done.order_table is not None and options.return_order_topic_config_to_broker:
        body = encode_kv_table(KVTable(done.order_table))
    ext = {name: address for name, address in found.items() if address is not None}
    return Answer(ext=ext, body=body, event_id=done.event_id, again=done.again)
