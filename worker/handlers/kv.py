"""KV configuration: 100, 101, 102, 219."""

from registry import kv
from registry.errors import ConfigNotFound
from registry.plans import Plan
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.kv_table import KVTable, encode_kv_table
from worker.dispatch import failure, handles, written
from worker.reply import Depends, Handled, Reply, Request


@handles(RequestCode.PUT_KV_CONFIG)
def put_kv_config(request: Request) -> Handled:
    """A missing value makes the namespace and nothing that 101 could find, as a null value does in Java."""
    namespace, key = request.get("namespace"), request.get("key")
    if namespace is None or key is None:
        return failure("namespace or key is null")
    value = request.get("value")
    return written(kv.put(request.keys, namespace, key, value, request.origin, limits=request.limits))


@handles(RequestCode.GET_KV_CONFIG)
def get_kv_config(request: Request) -> Plan[Reply]:
    """Reply field `value`. Raises ConfigNotFound, for a missing argument too."""
    namespace, key = request.get("namespace"), request.get("key")
    if namespace is None or key is None:
        raise ConfigNotFound("namespace or key is missing")
    return Reply(ext={"value": (yield from kv.get(request.keys, namespace, key))})


@handles(RequestCode.DELETE_KV_CONFIG)
def delete_kv_config(request: Request) -> Handled:
    """Always a success; the namespace stays."""
    namespace, key = request.get("namespace"), request.get("key")
    if namespace is None or key is None:
        return Reply()
    return written(kv.delete(request.keys, namespace, key, request.origin))


@handles(RequestCode.GET_KVLIST_BY_NAMESPACE)
def get_kvlist_by_namespace(request: Request) -> Plan[Reply]:
    """Body: the KV table, of an existing empty namespace too. Raises ConfigNotFound."""
    namespace = request.get("namespace")
    if namespace is None:
        raise ConfigNotFound("namespace is missing")
    table = yield from kv.table(request.keys, namespace)
    return Reply(body=encode_kv_table(KVTable(table)), depends=Depends())
