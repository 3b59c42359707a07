"""Subscribe info: the queues of a topic, and which broker to pull from."""

from collections.abc import Mapping

from msgspec import Struct

from mqns.names import MASTER_ID
from mqns.routes.queues import QueueRun, Queues
from mqns.routes.static_topics import queue_runs
from rocketmq_remoting.permission import PERM_READ
from rocketmq_remoting.route import TopicRouteData


class FindBrokerResult(Struct, frozen=True):
    """A broker to pull from."""

    address: str
    is_slave: bool


def subscribe_queues(topic: str, route: TopicRouteData) -> Queues:
    """Return a static topic's queues, else all readable ones, by broker name; no master is needed."""
    if route.topic_queue_mapping_by_broker:
        return Queues(topic, queue_runs(route.topic_queue_mapping_by_broker.values()))
    readable = [data for data in route.queue_datas if data.perm & PERM_READ]
    readable.sort(key=lambda data: data.broker_name)
    return Queues(topic, (QueueRun(data.broker_name, data.read_queue_nums) for data in readable))


def find_broker(
    addresses: Mapping[int, str], wanted_id: int = MASTER_ID, *, only_this: bool = False
) -> FindBrokerResult | None:
    """Return the wanted broker of one name; if it is a slave and missing, the next id; else any.

    With `only_this` no other broker than that next slave is returned; None without any."""
    is_slave = wanted_id != MASTER_ID
    address = addresses.get(wanted_id)
    if address is None and is_slave:
        address = addresses.get(wanted_id + 1)
    if address is None and addresses and not only_this:
        found = min(addresses)
        address, is_slave = addresses[found], found != MASTER_ID
    return None if address is None else FindBrokerResult(address, is_slave)
