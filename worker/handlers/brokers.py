"""Registered brokers: 104 unregister, 322 data version, 904 heartbeat."""

from msgspec.structs import replace

from registry.plans import Plan
from registry.registration.heartbeat import Heartbeat, renew_lease
from registry.removal import unregister
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.data_version import DataVersion, decode_queried_version
from worker.dispatch import failure, handles
from worker.reply import Handled, Reply, Request


@handles(RequestCode.UNREGISTER_BROKER)
def unregister_broker(request: Request) -> Handled:
    """Unregister by address; the id may be missing (RocketMQ 5.1 RouteInfoManager.unRegisterBroker)."""
    cluster, address, name = (request.get(field) for field in ("clusterName", "brokerAddr", "brokerName"))
    if cluster is None or address is None or name is None:
        return Reply()
    return _removed(request, cluster, address, name)


@handles(RequestCode.QUERY_DATA_VERSION)
def query_data_version(request: Request) -> Handled:
    """Compare data versions; a heartbeat too, of any broker version (RocketMQ 5.x queryBrokerTopicConfig)."""
    cluster, address = request.get("clusterName"), request.get("brokerAddr")
    asked = decode_queried_version(request.command.body)
    if cluster is None or address is None:
        return Reply(ext={"changed": "true"})
    return _compared(asked, _renewal(request, cluster, address))


@handles(RequestCode.BROKER_HEARTBEAT)
def broker_heartbeat(request: Request) -> Handled:
    """Renew the lease; of a broker that is not registered it changes nothing and is a success all the same."""
    cluster, address = request.get("clusterName"), request.get("brokerAddr")
    if cluster is None or address is None:
        return failure("the custom field <clusterName> or <brokerAddr> is null")
    return _renewed(_renewal(request, cluster, address))


def _renewal(request: Request, cluster: str, address: str) -> Plan[Heartbeat]:
    return renew_lease(
        request.keys,
        cluster,
        address,
        request.origin,
        event_code=request.event_code,
        claimant=request.claimant,
    )


def _removed(request: Request, cluster: str, address: str, name: str) -> Plan[Reply]:
    removal = yield from unregister(
        request.keys,
        cluster,
        address,
        name,
        request.get("brokerId"),
        request.origin,
        claimant=request.claimant,
    )
    return Reply(event_id=removal.event_id)


def _compared(asked: DataVersion | None, plan: Plan[Heartbeat]) -> Plan[Reply]:
    heartbeat = yield from plan
    changed = heartbeat.version is None or heartbeat.version != asked
    body = heartbeat.version.encode() if heartbeat.version is not None else b""
    ext = {"changed": "true" if changed else "false"}
    return _accepted(heartbeat, Reply(ext=ext, body=body))


def _renewed(plan: Plan[Heartbeat]) -> Plan[Reply]:
    heartbeat = yield from plan
    return _accepted(heartbeat, Reply())


def _accepted(heartbeat: Heartbeat, reply: Reply) -> Reply:
    """Return the reply with what the heartbeat did; one of an unknown member did nothing."""
    outcome = "" if heartbeat.version is None else "renewed"
    return replace(reply, event_id=heartbeat.event_id, renewal=heartbeat.renewal, outcome=outcome)
