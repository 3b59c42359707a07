"""The commands that RocketMQ's mqadmin has for name servers: its names, its options, and what it prints (5.5.0).

What mqadmin adds from brokers (versions, rates, consumer groups) is left out. JSON and YAML are those of the other
commands of `mqns`."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.clusters import members
from mqns.cli.commands import Changes, command
from mqns.cli.config import ConfigChangeDocument, ConfigDocument
from mqns.cli.exit_codes import NotFound
from mqns.cli.kv import KVChangeDocument, KVDocument
from mqns.cli.names import not_empty
from mqns.cli.output import Document, lines
from mqns.cli.permissions import PermissionDocument
from mqns.cli.previews import approved
from mqns.cli.route_previews import of_config, of_kv, of_permission, of_topic
from mqns.cli.routes import BrokerDocument, RouteDocument, document
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError
from mqns.name_server import calls
from mqns.names import ORDER_TOPIC_CONFIG
from mqns.remoting.call import Call
from rocketmq_remoting.json_encoding import Dialect
from rocketmq_remoting.route import TopicRouteData, encode_route

_ROUTE_WIDTHS: Final = (45, 32, 50, 10, 11, 5)
_ROUTE_HEADINGS: Final = ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
_RULE: Final = "-" * 158
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}\[\],]|[^"{}\[\],]+')


CHANGES: Final[Mapping[str, Changes]] = {
    **dict.fromkeys(("updateKvConfig", "addWritePerm"), "something"),
    **dict.fromkeys(
        ("deleteTopic", "deleteKvConfig", "updateOrderConf", "wipeWritePerm", "updateNamesrvConfig"),
        "takes away",
    ),
}


class OrderConfMethod(StrEnum):
    """The methods of updateOrderConf."""

    GET = "get"
    PUT = "put"
    DELETE = "delete"


class TopicOfCluster(Document, frozen=True):
    """A topic of one cluster's brokers."""

    cluster: str
    topic: str


class TopicDeletion(Document, frozen=True):
    """A deleted topic; `cluster` null: of all clusters."""

    topic: str
    cluster: str | None
    name_servers: tuple[str, ...]


Topic = Annotated[str, typer.Option("-t", "--topic", help="Topic", show_default=False, callback=not_empty)]
InList = Annotated[bool, typer.Option("-l", "--list", help="A table instead of JSON")]
ByCluster = Annotated[bool, typer.Option("-c", "--clusterModel", help="With the clusters of each topic")]
ClusterName = Annotated[str | None, typer.Option("-c", "--clusterName", help="Cluster", show_default=False)]
Namespace = Annotated[str, typer.Option("-s", "--namespace", help="Namespace", show_default=False)]
Key = Annotated[str, typer.Option("-k", "--key", help="Key", show_default=False)]
Value = Annotated[str, typer.Option("-v", "--value", help="Value", show_default=False)]
BrokerName = Annotated[
    str, typer.Option("-b", "--brokerName", help="Broker name", show_default=False, callback=not_empty)
]
OrderConf = Annotated[
    str | None,
    typer.Option("-v", "--orderConf", help="For put: brokerName1:num;brokerName2:num", show_default=False),
]
How = Annotated[OrderConfMethod, typer.Option("-m", "--method", help="What to do", show_default=False)]


def add(app: typer.Typer, panel: str) -> None:
    """Add all commands of mqadmin."""
    commands: dict[str, Callable[..., None]] = {
        "topicRoute": topic_route,
        "topicList": topic_list,
        "topicClusterList": topic_cluster_list,
        "clusterList": cluster_list,
        "deleteTopic": delete_topic,
        "updateKvConfig": update_kv_config,
        "deleteKvConfig": delete_kv_config,
        "updateOrderConf": update_order_conf,
        "wipeWritePerm": wipe_write_perm,
        "addWritePerm": add_write_perm,
        "getNamesrvConfig": get_namesrv_config,
        "updateNamesrvConfig": update_namesrv_config,
    }
    for name, function in commands.items():
        command(app, name, panel=panel, changes=CHANGES.get(name, "nothing"))(function)


# routes and topics


def topic_route(settings: CommandContext, topic: Topic, list_: InList = False) -> None:
    """The route of a topic."""
    route = _route(settings, topic)
    shown = document(topic, route)
    text = _route_list(shown) if list_ else _pretty(encode_route(route, Dialect.LEGACY).decode()).splitlines()
    settings.output.show(shown, lambda: lines(text))


def topic_list(settings: CommandContext, cluster: ByCluster = False) -> None:
    """All topics."""
    with settings.name_server() as server:
        names = sorted(set(server.get_topics().topic_list))
        if not cluster:
            settings.output.show(names, lambda: lines(names))
            return
        clusters = sorted(server.get_cluster_info().cluster_addr_table)
        owned = [
            TopicOfCluster(name, topic)
            for name in clusters
            for topic in sorted(set(server.get_topics_of_cluster(name).topic_list))
        ]
    rows = [(entry.cluster, entry.topic) for entry in owned]
    settings.output.show(
        owned, lambda: lines(f"{c:<20}  {t:<48}" for c, t in [("#Cluster Name", "#Topic"), *rows])
    )


def topic_cluster_list(settings: CommandContext, topic: Topic) -> None:
    """The clusters whose brokers serve a topic."""
    names = sorted({data.cluster for data in _route(settings, topic).broker_datas})
    settings.output.show(names, lambda: lines(names))


def delete_topic(settings: CommandContext, topic: Topic, cluster: ClusterName = None) -> None:
    """Delete a topic from all name servers. No request goes to brokers: one that has it brings it back."""
    if not approved(settings, lambda: of_topic(settings, topic, cluster)):
        return
    with settings.name_server() as server:
        server.call_all(calls.delete_topic(topic, cluster))
    settings.output.show(
        TopicDeletion(topic, cluster, settings.addresses),
        lambda: lines([f"delete topic [{topic}] from NameServer success."]),
    )


def cluster_list(settings: CommandContext, cluster: ClusterName = None) -> None:
    """All brokers; what mqadmin asks of each broker itself is left out."""
    with settings.name_server() as server:
        listed = [
            member for member in members(server.get_cluster_info()) if cluster in (None, member.cluster)
        ]
    headings = ("#Cluster Name", "#Broker Name", "#BID", "#Addr")
    rows = [
        (member.cluster, member.broker_name, str(member.broker_id), member.broker_addr) for member in listed
    ]
    settings.output.show(
        listed,
        lambda: lines(
            f"{c:<22}  {name:<22}  {id_:<4}  {addr:<22}" for c, name, id_, addr in [headings, *rows]
        ),
    )


# KV configuration


def update_kv_config(settings: CommandContext, namespace: Namespace, key: Key, value: Value) -> None:
    """Set a key in all name servers."""
    _change_kv(settings, namespace, key, value, "create or update kv config to namespace success.")


def delete_kv_config(settings: CommandContext, namespace: Namespace, key: Key) -> None:
    """Delete a key from all name servers."""
    _change_kv(settings, namespace, key, None, "delete kv config from namespace success.")


def update_order_conf(
    settings: CommandContext, topic: Topic, method: How, order_conf: OrderConf = None
) -> None:
    """Get, put or delete the order of a topic's queues."""
    if method is OrderConfMethod.GET:
        with settings.name_server() as server:
            found = server.get_kv_config(ORDER_TOPIC_CONFIG, topic)
        if found is None:
            raise NotFound(f"No config item, Namespace: {ORDER_TOPIC_CONFIG} Key: {topic}")
        settings.output.show(
            KVDocument(ORDER_TOPIC_CONFIG, topic, found),
            lambda: lines([f"get orderConf success. topic=[{topic}], orderConf=[{found}] "]),
        )
    elif method is OrderConfMethod.DELETE:
        _change_kv(settings, ORDER_TOPIC_CONFIG, topic, None, f"delete orderConf success. topic=[{topic}]")
    elif order_conf is None:
        raise ConfigError("put needs --orderConf")
    else:
        text = f"update orderConf success. topic=[{topic}], orderConf=[{order_conf}]"
        _change_kv(settings, ORDER_TOPIC_CONFIG, topic, order_conf, text)


# write permission


def wipe_write_perm(settings: CommandContext, broker: BrokerName) -> None:
    """Take the write permission from all topics of a broker, in all name servers."""
    _change_perm(settings, broker, calls.wipe_write_perm, "wipe")


def add_write_perm(settings: CommandContext, broker: BrokerName) -> None:
    """Make all topics of a broker readable and writable, in all name servers."""
    _change_perm(settings, broker, calls.add_write_perm, "add")


# configuration


def get_namesrv_config(settings: CommandContext) -> None:
    """The options of each name server."""
    with settings.name_server() as server:
        found = settings.in_order(server.call_all(calls.get_config()))
    documents = [ConfigDocument(address, dict(sorted(config.items()))) for address, config in found]
    settings.output.show(documents, lambda: lines(line for shown in documents for line in _config(shown)))


def update_namesrv_config(settings: CommandContext, key: Key, value: Value) -> None:
    """Set an option in all name servers."""
    if not approved(settings, lambda: of_config(settings, key, value)):
        return
    with settings.name_server() as server:
        server.call_all(calls.update_config({key: value}))
    settings.output.show(
        ConfigChangeDocument(key, value, settings.addresses),
        lambda: lines(
            [f"update name server config success![{', '.join(settings.addresses)}]", f"{key} : {value}"]
        ),
    )


def _route(settings: CommandContext, topic: str) -> TopicRouteData:
    with settings.name_server() as server:
        route = server.get_route(topic)
    if route is None:
        raise NotFound(f"no route of {topic}")
    return msgspec.structs.replace(
        route,
        broker_datas=tuple(sorted(route.broker_datas, key=lambda data: data.broker_name)),
        queue_datas=tuple(sorted(route.queue_datas, key=lambda data: data.broker_name)),
    )


def _route_list(route: RouteDocument) -> list[str]:
    brokers = {broker.broker_name: broker for broker in route.broker_datas}
    rows = [
        (
            brokers[queue.broker_name].cluster,
            queue.broker_name,
            _java_map(brokers[queue.broker_name]),
            queue.read_queue_nums,
            queue.write_queue_nums,
            queue.perm,
        )
        for queue in route.queue_datas
        if queue.broker_name in brokers
    ]
    total = ("Total:", len(brokers), "", sum(row[3] for row in rows), sum(row[4] for row in rows), "")
    return [_route_row(_ROUTE_HEADINGS), *map(_route_row, rows), _RULE, _route_row(total)]


def _route_row(cells: Iterable[object]) -> str:
    return " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, _ROUTE_WIDTHS, strict=True))


def _java_map(broker: BrokerDocument) -> str:
    return "{" + ", ".join(f"{number}={address}" for number, address in broker.broker_addrs.items()) + "}"


def _pretty(compact: str) -> str:
    """Return compact JSON of either dialect in fastjson's layout: a member a line, indented by tabs."""
    made, depth = [], 0
    for token in _TOKEN.findall(compact):
        if token in ("{", "["):
            depth += 1
            made.append(token + "\n" + "\t" * depth)
        elif token in ("}", "]"):
            depth -= 1
            made.append("\n" + "\t" * depth + token)
        else:
            made.append(token + "\n" + "\t" * depth if token == "," else token)
    return "".join(made)


def _config(shown: ConfigDocument) -> list[str]:
    heading = f"============{shown.name_server}============"
    return [heading, *(f"{key:<50}=  {value}" for key, value in shown.config.items())]


def _change_kv(settings: CommandContext, namespace: str, key: str, value: str | None, text: str) -> None:
    call = (
        calls.delete_kv_config(namespace, key)
        if value is None
        else calls.put_kv_config(namespace, key, value)
    )
    if not approved(settings, lambda: of_kv(settings, namespace, key, value)):
        return
    with settings.name_server() as server:
        server.call_all(call)
    settings.output.show(KVChangeDocument(namespace, key, value, settings.addresses), lambda: lines([text]))


def _change_perm(settings: CommandContext, broker: str, call: Callable[[str], Call[int]], word: str) -> None:
    if not approved(settings, lambda: of_permission(settings, (broker,), wipes=word == "wipe")):
        return
    with settings.name_server() as server:
        counts = settings.in_order(server.call_all(call(broker)))
    documents = [PermissionDocument(address, broker, count) for address, count in counts]
    settings.output.show(
        documents,
        lambda: lines(
            f"{word} write perm of broker[{broker}] in name server[{shown.name_server}] OK, {shown.topic_count}"
            for shown in documents
        ),
    )
