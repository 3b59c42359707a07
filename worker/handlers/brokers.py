"""Brokers that are known: 104 unregister, 322 data version, 904 heartbeat."""

from registry.beats import Beat, beat
from registry.plans import Plan
from registry.removal import unregister
from remoting.codes import RequestCode
from remoting.data_version import DataVersion, decode_asked_version
from worker.answer import Answer, Handled, Request
from worker.dispatch import failure, handles


@handles(RequestCode.UNREGISTER_BROKER)
def unregister_broker(request: Request) -> Handled:
    """The address decides; the id may be missing (RocketMQ 5.1 RouteInfoManager.unRegisterBroker)."""
    cluster, address, name = (request.get(field) for field in ("clusterName", "brokerAddr", "brokerName"))
    if cluster is None or address is None or name is None:
        return Answer()
    return _removed(request, cluster, address, name)


@handles(RequestCode.QUERY_DATA_VERSION)
def query_data_version(request: Request) -> Handled:
    """A beat too, whatever the broker's version is (RocketMQ 5.x queryBrokerTopicConfig)."""
    cluster, address = request.get("clusterName"), request.get("brokerAddr")
    asked = decode_asked_version(request.command.body)
    if cluster is None or address is None:
        return Answer(ext={"changed": "true"})
    return _compared(asked, beat(request.keys, cluster, address, request.act, told_as=request.told_as))


@handles(RequestCode.BROKER_HEARTBEAT)
def broker_heartbeat(request: Request) -> Handled:
    """A beat; of a broker that is not registered it changes nothing and is a success all the same."""
    cluster, address = request.get("clusterName"), request.get("brokerAddr")
    if cluster is None or address is None:
        return failure("the custom field <clusterName> or <brokerAddr> is null")
    return _beaten(beat(request.keys, cluster, address, request.act, told_as=request.told_as))


def _removed(request: Request, cluster: str, address: str, name: str) -> Plan[Answer]:
    removal = yield from unregister(
        request.keys, cluster, address, name, request.get("brokerId"), request.act
    )
    return Answer(event_id=removal.event_id)


def _compared(asked: DataVersion | None, plan: Plan[Beat]) -> Plan[Answer]:
    found = yield from plan
    changed = found.version is None or found.version != asked
    body = found.version.encode() if found.version is not None else b""
    ext = {"changed": "true" if changed else "false"}
    return Answer(ext=ext, body=body, event_id=found.event_id, again=found.again)


def _beaten(plan: Plan[Beat]) -> Plan[Answer]:
    found = yield from plan
    return Answer(event_id=found.event_id, again=found.again)
