"""Replies made before the store came back empty, for brokers that have not registered again yet.

Replies made of the new store are completed with them: a broker that is back is shown as the store has it, one that left
is not shown, and any other is shown as it was."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from registry.caching.bounded import Bounded
from rocketmq_remoting.cluster import ClusterInfo, decode_cluster_info, encode_cluster_info
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import BrokerData, TopicRouteData, decode_route, encode_route
from worker.cache.views import AskedView, Key, cost_of
from worker.reply import Depends, Reply

NO_ROUTE = TopicRouteData((), ())

Awaited = Mapping[str, frozenset[int]]
"""Broker names and their ids; never changed, only replaced."""
NO_BROKERS: Awaited = {}


class BeforeLoss:
    """Lives on one event loop, within `limit` bytes; empty as long as the store has never come back empty."""

    def __init__(self, limit: int) -> None:
        self._replies: Bounded[Key, Reply] = Bounded(limit, cost_of)
        self.awaited = NO_BROKERS

    def begin(self, cached: Iterable[tuple[Key, Reply]]) -> None:
        """Keep these replies, which were right before the store came back empty."""
        awaited = dict(self.awaited)
        for key, reply in cached:
            self._replies.put(key, reply)
            for name, ids in _listed(reply).items():
                awaited[name] = awaited.get(name, frozenset()) | ids
        self.awaited = awaited

    def returned(self, name: str, ids: frozenset[int] | None) -> bool:
        """Note that broker `name` is registered again under these ids, or will not come back (None).

        Return whether replies change."""
        expected = self.awaited.get(name)
        if expected is None or (ids is not None and not ids >= expected):
            return False
        self.awaited = {other: ids for other, ids in self.awaited.items() if other != name}
        return True

    def end(self) -> Iterable[str]:
        """Stop completing replies; return the names of the brokers that are not back."""
        names = self.awaited.keys()
        self._replies.clear()
        self.awaited = NO_BROKERS
        return names

    def complete(self, key: Key, reply: Reply, awaited: Awaited = NO_BROKERS) -> Reply:
        """Return a reply made of the store, completed with the brokers that are awaited.

        `awaited` are those of when the store was asked: one that came back since need not be in the reply."""
        before = self._replies.get(key)
        if before is None or reply.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            return reply
        listed = {
            name: ids for name, ids in _listed(before).items() if name in self.awaited or name in awaited
        }
        if not listed:
            return reply
        asked = key[1]
        body = _clusters(before, reply, listed) if asked is None else _route(before, reply, listed, asked)
        return Reply(body=body, depends=_depends(reply.depends, listed))


def _listed(reply: Reply) -> dict[str, frozenset[int]]:
    return reply.depends.listed if reply.depends is not None else {}


def _depends(depends: Depends | None, listed: dict[str, frozenset[int]]) -> Depends | None:
    """Return what the completed reply depends on."""
    if depends is None:
        return None
    ids = {name: depends.listed.get(name, frozenset()) | was for name, was in listed.items()}
    return replace(depends, brokers=depends.brokers | listed.keys(), listed=depends.listed | ids)


def _route(before: Reply, now: Reply, names: Iterable[str], asked: AskedView) -> bytes:
    was, current = decode_route(before.body), NO_ROUTE if now.code else decode_route(now.body)
    waiting = {data.broker_name: data for data in was.broker_datas if data.broker_name in names}
    brokers = _merged(waiting, {data.broker_name: data for data in current.broker_datas})
    queues = {data.broker_name: data for data in was.queue_datas if data.broker_name in names}
    queues |= {data.broker_name: data for data in current.queue_datas}
    addresses = {address for data in waiting.values() for address in data.broker_addrs.values()}
    filters = {
        address: servers for address, servers in was.filter_server_table.items() if address in addresses
    }
    mappings = {
        name: info for name, info in (was.topic_queue_mapping_by_broker or {}).items() if name in names
    } | (current.topic_queue_mapping_by_broker or {})
    route = TopicRouteData(
        tuple(brokers.values()),
        tuple(queues.values()),
        filters | current.filter_server_table,
        current.order_topic_conf or was.order_topic_conf,
        mappings or None,
    )
    dialect = Dialect.STANDARD if asked.standard else Dialect.LEGACY
    return encode_route(route, dialect, v5_members=not asked.omits_v5)


def _clusters(before: Reply, now: Reply, names: Iterable[str]) -> bytes:
    was, current = decode_cluster_info(before.body), decode_cluster_info(now.body)
    waiting = {name: data for name, data in was.broker_addr_table.items() if name in names}
    clusters = {
        cluster: tuple(name for name in listed if name in names)
        for cluster, listed in was.cluster_addr_table.items()
    }
    for cluster, listed in current.cluster_addr_table.items():
        clusters[cluster] = tuple(dict.fromkeys((*clusters.get(cluster, ()), *listed)))
    filled = {cluster: listed for cluster, listed in clusters.items() if listed}
    return encode_cluster_info(ClusterInfo(_merged(waiting, current.broker_addr_table), filled))


def _merged(was: dict[str, BrokerData], now: dict[str, BrokerData]) -> dict[str, BrokerData]:
    """Return both by name; of one in both, the ids that are not back yet are added."""
    both = {
        name: replace(
            now[name], broker_addrs=dict(sorted((data.broker_addrs | now[name].broker_addrs).items()))
        )
        for name, data in was.items()
        if name in now
    }
    return was | now | both
