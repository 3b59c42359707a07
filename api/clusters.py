"""Clusters as request 106 returns them: brokers with a living member."""

from apiflask import APIBlueprint

from api.name_server import name_server
from api.paging import PageQuery, page
from api.problems import Problem
from api.shapes import Answer
from registry.clusters import cluster_info, cluster_names
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.route import BrokerData

bp = APIBlueprint("clusters", __name__, url_prefix="/v1/clusters")


class BrokerDataAnswer(Answer):
    """The living members of one broker name by id; `cluster` is that of its first registration."""

    broker_name: str
    cluster: str
    broker_addrs: dict[int, str]
    enable_acting_master: bool
    zone_name: str | None

    @classmethod
    def of(cls, data: BrokerData) -> "BrokerDataAnswer":
        return cls(
            broker_name=data.broker_name,
            cluster=data.cluster,
            broker_addrs=data.broker_addrs,
            enable_acting_master=data.enable_acting_master,
            zone_name=data.zone_name,
        )


class ClustersQuery(PageQuery):
    """`brokers` false: names alone, of all clusters with a broker, whether it lives or not."""

    brokers: bool = True


class Cluster(Answer):
    """`brokerDatas` is null where names alone were asked for."""

    cluster: str
    broker_datas: tuple[BrokerDataAnswer, ...] | None

    @classmethod
    def of(cls, info: ClusterInfo, name: str) -> "Cluster":
        names = info.cluster_addr_table[name]
        return cls(
            cluster=name,
            broker_datas=tuple(BrokerDataAnswer.of(info.broker_addr_table[broker]) for broker in names),
        )


class Clusters(Answer):
    clusters: tuple[Cluster, ...]
    next: str | None


@bp.get("")
@bp.input(ClustersQuery, location="query")
@bp.output(Clusters)
@bp.doc(operation_id="listClusters")
def clusters(query_data: ClustersQuery) -> Clusters:
    """Clusters by name"""
    server = name_server()
    if not query_data.brokers:
        names, after = page(server.run(cluster_names(server.keys)), query_data)
        return Clusters(
            clusters=tuple(Cluster(cluster=name, broker_datas=None) for name in names), next=after
        )
    info = server.run(cluster_info(server.keys))
    names, after = page(tuple(info.cluster_addr_table), query_data)
    return Clusters(clusters=tuple(Cluster.of(info, name) for name in names), next=after)


@bp.get("/<name>")
@bp.output(Cluster)
@bp.doc(operation_id="getCluster", responses=[404])
def cluster(name: str) -> Cluster:
    """One cluster"""
    server = name_server()
    info = server.run(cluster_info(server.keys))
    if name not in info.cluster_addr_table:
        raise Problem(404, "cluster-not-found", f"no living broker in cluster {name!r}")
    return Cluster.of(info, name)
