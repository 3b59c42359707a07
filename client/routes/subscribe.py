"""Subscribe info: the queues of a topic, and which broker to pull from."""

from collections.abc import Mapping

from msgspec import Struct

from client.routes.names import MASTER_ID
from client.routes.queues import QueueRun, Queues
from client.routes.static_topics import queue_runs
from remoting.permission import PERM_READ
from remoting.route import TopicRouteData


class PullFrom(Struct, frozen=True):
    """A broker that serves a queue; a slave has older messages, at times all that are."""

    address: str
    is_slave: bool


def subscribe_queues(topic: str, route: TopicRouteData) -> Queues:
    """A static topic's queues, or all that may be read, by broker name; no master is needed."""
    if route.topic_queue_mapping_by_broker:
        return Queues(topic, queue_runs(route.topic_queue_mapping_by_broker.values()))
    readable = [data for data in route.queue_datas if data.perm & PERM_READ]
    readable.sort(key=lambda data: data.broker_name)
    return Queues(topic, (QueueRun(data.broker_name, data.read_queue_nums) for data in readable))


def pull_from(
    addresses: Mapping[int, str], wanted_id: int = MASTER_ID, *, only_this: bool = False
) -> PullFrom | None:
    """Of the brokers of one name the wanted one; if that is a slave and gone, the next; else any.

    With `only_this` nobody else is asked but that next slave; None if there is none to ask."""
    is_slave = wanted_id != MASTER_ID
    address = addresses.get(wanted_id)
    if address is None and is_slave:
        address = addresses.get(wanted_id + 1)
    if address is None and addresses and not only_this:
        found = min(addresses)
        address, is_slave = addresses[found], found != MASTER_ID
    return None if address is None else PullFrom(address, is_slave)
