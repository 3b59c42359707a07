"""What was answered before the store came back empty, of brokers that have not registered again yet.

Answers made of the new store are completed with it: who is back is shown as the store has it, who left is not shown,
and who has not been heard of yet is shown as it was."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from remoting.cluster import ClusterInfo, decode_cluster_info, encode_cluster_info
from remoting.codes import ResponseCode
from remoting.json_out import Dialect
from remoting.route import BrokerData, TopicRouteData, decode_route, encode_route
from worker.answer import Answer, Depends
from worker.route_view import AskedView, Key

NO_ROUTE = TopicRouteData((), ())

Awaited = Mapping[str, frozenset[int]]
"""Broker names and their ids; never changed, only replaced."""
NOBODY: Awaited = {}


class Remembered:
    """Lives on one event loop; empty as long as the store has never come back empty."""

    def __init__(self) -> None:
        self._answers: dict[Key, Answer] = {}
        self.awaited = NOBODY

    def begin(self, kept: Iterable[tuple[Key, Answer]]) -> None:
        """The store came back empty: these answers were right before."""
        found = dict(kept)
        self._answers |= found
        awaited = dict(self.awaited)
        for answer in found.values():
            for name, ids in _listed(answer).items():
                awaited[name] = awaited.get(name, frozenset()) | ids
        self.awaited = awaited

    def settled(self, name: str, ids: frozenset[int] | None) -> bool:
        """Broker `name` is registered again under these ids; None: it will not come back. Whether answers change."""
        waits = self.awaited.get(name)
        if waits is None or (ids is not None and not ids >= waits):
            return False
        self.awaited = {other: ids for other, ids in self.awaited.items() if other != name}
        return True

    def forget(self) -> Iterable[str]:
        """Who is not back by now, these names, is not shown any more."""
        names = self.awaited.keys()
        self._answers, self.awaited = {}, NOBODY
        return names

    def over(self, key: Key, answer: Answer, awaited: Awaited = NOBODY) -> Answer:
        """The answer, made of the store as it was a moment ago, with the brokers that are waited for.

        `awaited` is who was when the store was asked: who came back since need not be in the answer."""
        before = self._answers.get(key)
        if before is None or answer.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            return answer
        listed = {
            name: ids for name, ids in _listed(before).items() if name in self.awaited or name in awaited
        }
        if not listed:
            return answer
        asked = key[1]
        body = _clusters(before, answer, listed) if asked is None else _route(before, answer, listed, asked)
        return Answer(body=body, depends=_depends(answer.depends, listed))


def _listed(answer: Answer) -> dict[str, frozenset[int]]:
    return answer.depends.listed if answer.depends is not None else {}


def _depends(depends: Depends | None, listed: dict[str, frozenset[int]]) -> Depends | None:
    """Also on those who are not in the store."""
    if depends is None:
        return None
    ids = {name: depends.listed.get(name, frozenset()) | was for name, was in listed.items()}
    return replace(depends, brokers=depends.brokers | listed.keys(), listed=depends.listed | ids)


def _route(before: Answer, now: Answer, names: Iterable[str], asked: AskedView) -> bytes:
    was, found = decode_route(before.body), NO_ROUTE if now.code else decode_route(now.body)
    waiting = {data.broker_name: data for data in was.broker_datas if data.broker_name in names}
    brokers = _together(waiting, {data.broker_name: data for data in found.broker_datas})
    queues = {data.broker_name: data for data in was.queue_datas if data.broker_name in names}
    queues |= {data.broker_name: data for data in found.queue_datas}
    addresses = {address for data in waiting.values() for address in data.broker_addrs.values()}
    filters = {
        address: servers for address, servers in was.filter_server_table.items() if address in addresses
    }
    mappings = {
        name: info for name, info in (was.topic_queue_mapping_by_broker or {}).items() if name in names
    } | (found.topic_queue_mapping_by_broker or {})
    route = TopicRouteData(
        tuple(brokers.values()),
        tuple(queues.values()),
        filters | found.filter_server_table,
        found.order_topic_conf or was.order_topic_conf,
        mappings or None,
    )
    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
    return encode_route(route, dialect, v5_members=not asked.omits_v5)


def _clusters(before: Answer, now: Answer, names: Iterable[str]) -> bytes:
    was, found = decode_cluster_info(before.body), decode_cluster_info(now.body)
    waiting = {name: data for name, data in was.broker_addr_table.items() if name in names}
    clusters = {
        cluster: tuple(name for name in listed if name in names)
        for cluster, listed in was.cluster_addr_table.items()
    }
    for cluster, listed in found.cluster_addr_table.items():
        clusters[cluster] = tuple(dict.fromkeys((*clusters.get(cluster, ()), *listed)))
    filled = {cluster: listed for cluster, listed in clusters.items() if listed}
    return encode_cluster_info(ClusterInfo(_together(waiting, found.broker_addr_table), filled))


def _together(was: dict[str, BrokerData], now: dict[str, BrokerData]) -> dict[str, BrokerData]:
    """By name; of one in both, the ids that are not back yet are added."""
    both = {
        name: replace(
            now[name], broker_addrs=dict(sorted((data.broker_addrs | now[name].broker_addrs).items()))
        )
        for name, data in was.items()
        if name in now
    }
    return was | now | both
