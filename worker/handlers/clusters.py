"""Clusters and groups: 106, 304, 901."""

from registry.clusters import cluster_info, member_group, system_topics
from registry.plans import Plan
from rocketmq_remoting.cluster import BrokerMemberGroup, encode_broker_member_group, encode_cluster_info
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.topic_list import encode_topic_list
from worker.dispatch import handles
from worker.reply import Depends, Handled, Reply, Request


@handles(RequestCode.GET_BROKER_CLUSTER_INFO)
def get_broker_cluster_info(request: Request) -> Plan[Reply]:
    """Body: ClusterInfo, in the legacy dialect whatever the version. Kept like routes."""
    info = yield from cluster_info(request.keys)
    listed = {name: frozenset(data.broker_addrs) for name, data in info.broker_addr_table.items()}
    return Reply(body=encode_cluster_info(info), depends=Depends(every=True, listed=listed))


@handles(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
def get_system_topic_list_from_ns(request: Request) -> Plan[Reply]:
    """Body: cluster and broker names as topics, and one broker to ask for the rest."""
    info = yield from cluster_info(request.keys)
    return Reply(body=encode_topic_list(system_topics(info)), depends=Depends())


@handles(RequestCode.GET_BROKER_MEMBER_GROUP)
def get_broker_member_group(request: Request) -> Handled:
    """Body: the group's living members, none of an unknown name; the cluster is an echo."""
    cluster, name = request.get("clusterName"), request.get("brokerName")
    if name is None:
        return Reply(body=encode_broker_member_group(BrokerMemberGroup(cluster, None, {})))
    return _group(request, cluster, name)


def _group(request: Request, cluster: str | None, name: str) -> Plan[Reply]:
    group = yield from member_group(request.keys, cluster, name)
    return Reply(body=encode_broker_member_group(group))
