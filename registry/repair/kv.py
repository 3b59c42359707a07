"""What can be repaired of the KV configuration, of which there is no copy: types of keys, the list of namespaces."""

from registry.damage.texts import readable
from registry.keys import ORDER_TOPIC_CONFIG
from registry.long_work.scan import members_of
from registry.plans import Plan, call
from registry.repair.slices import Slices
from registry.repair.state import Repaired


def compare_kv(slices: Slices) -> Plan[None]:
    """Delete namespaces of another type; list that of order topics, which brokers depend on, if it has any."""
    keys = slices.keys
    names = set(readable((yield from members_of(keys.kv_namespaces))))
    yield from slices.delete_wrong({keys.kv(name): "hash" for name in names})
    if ORDER_TOPIC_CONFIG not in names and (yield call("EXISTS", keys.kv(ORDER_TOPIC_CONFIG))):
        yield call("SADD", keys.kv_namespaces, ORDER_TOPIC_CONFIG)
        slices.repaired += Repaired(keys=1)
