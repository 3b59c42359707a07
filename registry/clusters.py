"""Clusters and the brokers in them: cluster info (106), member groups (901), system topics (304)."""

import msgspec

from registry.keys import Keys
from registry.long_work.scan import members_of, some_of
from registry.plans import Plan, ScriptCall
from registry.routes import addresses
from rocketmq_remoting.cluster import BrokerMemberGroup, ClusterInfo
from rocketmq_remoting.route import BrokerData
from rocketmq_remoting.topic_list import TopicList
from rocketmq_remoting.typed import converted

BROKERS_MAX = 200  # names a script


class _Broker(msgspec.Struct, frozen=True, array_like=True):
    """One of lua/read_clusters.lua's reply; `clusters` list it, `members` are `[id, address, ...]`."""

    name: str
    cluster: str
    acting: bool
    zone: str
    clusters: list[str]
    members: list[str]

    @property
    def data(self) -> BrokerData:
        return BrokerData(self.cluster, self.name, addresses(self.members), self.acting, self.zone or None)


def cluster_names(keys: Keys) -> Plan[set[str]]:
    """Return the names of clusters with a broker, whether it lives or not, in no order."""
    return (yield from members_of(keys.clusters))


def cluster_info(keys: Keys) -> Plan[ClusterInfo]:
    """Return every broker with a living member, and the broker names of each cluster."""
    brokers = yield from _read(keys)
    listed: dict[str, list[str]] = {}
    for broker in brokers:
        for cluster in broker.clusters:
            listed.setdefault(cluster, []).append(broker.name)
    return ClusterInfo(
        {broker.name: broker.data for broker in brokers},
        {cluster: tuple(listed[cluster]) for cluster in sorted(listed)},
    )


def member_group(keys: Keys, cluster: str | None, name: str) -> Plan[BrokerMemberGroup]:
    """Return the living members of one broker name, empty when there is none; `cluster` is the request's, echoed."""
    brokers = yield from _read(keys, name)
    return BrokerMemberGroup(cluster, name, addresses(brokers[0].members) if brokers else {})


def system_topics(info: ClusterInfo) -> TopicList:
    """Return cluster and broker names, which brokers make topics of, and one broker to ask for the rest (304)."""
    names = (*info.cluster_addr_table, *info.broker_addr_table)
    for data in info.broker_addr_table.values():
        return TopicList(names, data.broker_addrs[min(data.broker_addrs)])
    return TopicList(names)


def _read(keys: Keys, *names: str) -> Plan[list[_Broker]]:
    """Return the brokers of these names, or all, that have a living member, by name.

    All are read at one moment, unless they are so many that it takes several scripts: then each is."""
    shared = (keys.events_meta, keys.brokers, keys.leases)
    reply = yield ScriptCall("read_clusters", shared, names)
    rows = [] if reply is None else reply[1:]
    if reply is None:
        every, done = [*(yield from members_of(keys.brokers))], 0
        while done < len(every):
            asked = some_of(every, done, BROKERS_MAX)
            read, *more = yield ScriptCall("read_clusters", shared, tuple(asked))
            rows += more
            done += read
    return sorted(converted(rows, list[_Broker], strict=False), key=lambda broker: broker.name)
