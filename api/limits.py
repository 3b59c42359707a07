"""How far the namespace has grown towards its limits."""

from typing import Final

from apiflask import APIBlueprint

from api.name_server import name_server
from api.shapes import Answer
from registry.growth.usage import usage

bp = APIBlueprint("limits", __name__, url_prefix="/v1/limits")
HOSTS: Final = 10


class Used(Answer):
    """How many names there are, and how many there may be."""

    used: int
    most: int


class UsedBrokers(Used):
    """`most_of_host` is how many may first be registered from one host, by `maxPercentOfHost`; null is no limit."""

    most_of_host: int | None


class BrokersOfHost(Answer):
    """How many broker names were first registered from a host, an IPv6 one with its /64."""

    host: str
    brokers: int


class LimitsUsed(Answer):
    """The limits are `maxBrokers`, `maxTopics` and `maxKvNamespaces`; `hosts` are the ten with most brokers."""

    brokers: UsedBrokers
    topics: Used
    kv_namespaces: Used
    hosts: list[BrokersOfHost]


@bp.get("")
@bp.output(LimitsUsed)
@bp.doc(operation_id="getLimits")
def limits() -> LimitsUsed:
    """How full the namespace is

    What is new is refused at a limit; what is there stays."""
    server = name_server()
    found, most = server.run(usage(server.keys, hosts=HOSTS)), server.limits
    return LimitsUsed(
        brokers=UsedBrokers(used=found.brokers, most=most.max_brokers, most_of_host=most.brokers_of_host),
        topics=Used(used=found.topics, most=most.max_topics),
        kv_namespaces=Used(used=found.kv_namespaces, most=most.max_kv_namespaces),
        hosts=[BrokersOfHost(host=host, brokers=count) for host, count in found.hosts],
    )
