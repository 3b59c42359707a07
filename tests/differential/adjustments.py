"""Adjustments: each removes one allowed difference from a pair of replies, and nothing else."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.differential.answers import Seen
from tests.differential.exchange import Exchange
from tests.differential.sides import OPTIONS_OF_5X

Pair = tuple[Seen, Seen]
Adjust = Callable[[Exchange], Pair]
FAQ_4X = "http://rocketmq.apache.org/docs/faq/"
FAQ = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
INFOS = "topicQueueMappingByBroker"


def nothing(e: Exchange) -> Pair:
    return e.java, e.ours


def all_of_it(e: Exchange) -> Pair:
    """Accept both replies, which the condition of the rule has checked."""
    return e.ours, e.ours


def encoding(e: Exchange) -> Pair:
    return replace(e.java, binary=e.ours.binary), e.ours


def remark(e: Exchange) -> Pair:
    return replace(e.java, remark=e.ours.remark), e.ours


def address_of_faq(e: Exchange) -> Pair:
    return replace(e.java, remark=(e.java.remark or "").replace(FAQ_4X, FAQ)), e.ours


def dialect(e: Exchange) -> Pair:
    return replace(e.java, standard=e.ours.standard), e.ours


def masters(e: Exchange) -> Pair:
    return replace(e.java, ext=e.ours.ext), e.ours


def empty_fields(e: Exchange) -> Pair:
    return replace(e.java, ext={field: text for field, text in e.java.ext.items() if text}), e.ours


def members_of_5x(e: Exchange) -> Pair:
    """Java's side has them, too, where another rule has given it our answer."""
    bodies = _copy(e.java.body), _copy(e.ours.body)
    for body in bodies:
        for broker in _brokers_of(body):
            broker.pop("enableActingMaster", None)
            broker.pop("zoneName", None)
    return replace(e.java, body=bodies[0]), replace(e.ours, body=bodies[1])


def state_version(e: Exchange) -> Pair:
    body = _copy(e.ours.body)
    if isinstance(body, dict):
        body.pop("stateVersion")
    return e.java, replace(e.ours, body=body)


def options_of_5x(e: Exchange) -> Pair:
    body = {key: value for key, value in e.ours.body.items() if key not in OPTIONS_OF_5X}
    return e.java, replace(e.ours, body=body)


def some_broker(e: Exchange) -> Pair:
    bodies = [{key: one for key, one in seen.body.items() if key != "brokerAddr"} for seen in nothing(e)]
    return replace(e.java, body=bodies[0]), replace(e.ours, body=bodies[1])


def topics_of_several_flags(e: Exchange) -> Pair:
    flags = {topic: {row["topicSysFlag"] for row in rows.values()} for topic, rows in e.before.queues.items()}
    several = {topic for topic, found in flags.items() if len(found) > 1}
    java, ours = ([topic for topic in seen.body["topicList"] if topic not in several] for seen in nothing(e))
    return replace(e.java, body={"topicList": java}), replace(e.ours, body={"topicList": ours})


def empty_zones(e: Exchange) -> Pair:
    body = _copy(e.java.body)
    for broker in _brokers_of(body):
        if broker.get("zoneName") == "":
            del broker["zoneName"]
    return replace(e.java, body=body), e.ours


def filters_of_other_clusters(e: Exchange) -> Pair:
    """Drop members whose cluster is not that of their broker name, which only this server shows."""
    members = set(e.before.live)
    if e.behind is not None and e.behind.says is not None:
        members.add((e.behind.says.cluster, e.behind.says.addr))
    home = {addr: group.cluster for group in e.before.groups.values() for addr in group.addrs.values()}
    away = {addr for cluster, addr in members if home.get(addr, cluster) != cluster}
    body = _copy(e.ours.body)
    if isinstance(body, dict):
        body["filterServerTable"] = {a: one for a, one in body["filterServerTable"].items() if a not in away}
    return e.java, replace(e.ours, body=body)


def infos_that_stay(e: Exchange) -> Pair:
    """Drop Java's infos of brokers that do not serve the topic, were unregistered, or did not send them."""
    body, topic = _copy(e.java.body), e.ask.get("topic") or ""
    foreign = e.before.foreign
    if e.behind is not None and e.behind.says is not None:
        foreign |= {(key, bname) for key, bname in e.behind.says.infos if bname != e.behind.says.name}
    served = {row["brokerName"] for row in e.ours.body["queueDatas"]}
    ours, java = e.ours.body.get(INFOS, {}), body.pop(INFOS, {})

    def stays(name: str) -> bool:
        gone = name not in served or name in e.before.departed or topic in e.before.deleted
        return name not in ours and (gone or (topic, name) in foreign)

    if remaining := {name: info for name, info in java.items() if not stays(name)}:
        body[INFOS] = remaining
    return replace(e.java, body=body), e.ours


def _brokers_of(body: Any) -> list[dict[str, Any]]:
    if not isinstance(body, dict):
        return []
    return [*body.get("brokerDatas", []), *body.get("brokerAddrTable", {}).values()]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value
