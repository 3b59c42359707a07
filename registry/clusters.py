"""Clusters and the brokers in them: cluster info (106), member groups (901), system topics (304)."""

from registry.keys import Keys
from registry.plans import Plan, ScriptCall
from registry.routes import addresses
from remoting.cluster import BrokerMemberGroup, ClusterInfo
from remoting.route import BrokerData
from remoting.topic_list import TopicList


def cluster_info(keys: Keys) -> Plan[ClusterInfo]:
    """Every broker with a living member, and the broker names of each cluster."""
    rows = yield ScriptCall("clusters", (keys.events_meta, keys.brokers, keys.leases))
    brokers: dict[str, BrokerData] = {}
    listed: dict[str, list[str]] = {}
    for row in sorted(rows):
        name, cluster, acting, zone, count, *rest = row
        brokers[name] = BrokerData(cluster, name, addresses(rest[int(count) :]), acting == "1", zone or None)
        for one in rest[: int(count)]:
            listed.setdefault(one, []).append(name)
    return ClusterInfo(brokers, {cluster: tuple(listed[cluster]) for cluster in sorted(listed)})


def member_group(keys: Keys, cluster: str | None, name: str) -> Plan[BrokerMemberGroup]:
    """The living members of one broker name, empty when there is none; `cluster` is the request's, echoed."""
    rows = yield ScriptCall("clusters", (keys.events_meta, keys.brokers, keys.leases), (name,))
    found = addresses(rows[0][5 + int(rows[0][4]) :]) if rows else {}
    return BrokerMemberGroup(cluster, name, found)


def system_topics(info: ClusterInfo) -> TopicList:
    """Cluster and broker names, which brokers make topics of, and one broker to ask for the rest (304)."""
    names = (*info.cluster_addr_table, *info.broker_addr_table)
    for data in info.broker_addr_table.values():
        return TopicList(names, data.broker_addrs[min(data.broker_addrs)])
    return TopicList(names)
