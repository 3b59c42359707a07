"""The commands that are called as mqadmin's (what it prints itself is compared in tests/interop)."""

import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.scene import Scene
from tests.mqns.cli.conftest import Mqns, address

PRETTY = """\
{
\t"brokerDatas":[
\t\t{
\t\t\t"brokerAddrs":{
\t\t\t\t0:"127.10.0.1:10911",
\t\t\t\t1:"127.10.0.2:10911"
\t\t\t},
\t\t\t"brokerName":"broker-a",
\t\t\t"cluster":"c1",
\t\t\t"enableActingMaster":false
\t\t}
\t],
\t"filterServerTable":{},
\t"queueDatas":[
\t\t{
\t\t\t"brokerName":"broker-a",
\t\t\t"perm":6,
\t\t\t"readQueueNums":8,
\t\t\t"topicSysFlag":0,
\t\t\t"writeQueueNums":8
\t\t}
\t]
}
"""


def test_topic_route(ns: Scene, mqns: Mqns) -> None:
    ns.f2()
    assert mqns("topicRoute", "-t", "TA").out == PRETTY
    listed = mqns("topicRoute", "-t", "TA", "-l")
    assert listed.words == [
        ["#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"],
        ["c1", "broker-a", "{0=127.10.0.1:10911,", "1=127.10.0.2:10911}", "8", "8", "6"],
        ["-" * 158],
        ["Total:", "1", "8", "8"],
    ]
    document = mqns("topicRoute", "-t", "TA", "-o", "json").document
    assert [document] == mqns("routes", "TA", "-o", "json").document
    assert mqns("topicRoute", "-t", "NoSuch").code == ExitCode.REFUSED


def test_lists(ns: Scene, mqns: Mqns) -> None:
    ns.f2()
    assert mqns("topicList").out == "TA\nTB\n"
    assert mqns("topicList", "-c").words == [["#Cluster", "Name", "#Topic"], ["c1", "TA"], ["c1", "TB"]]
    assert mqns("topicList", "-c", "-o", "json").document[0] == {"cluster": "c1", "topic": "TA"}
    assert mqns("topicClusterList", "-t", "TA").out == "c1\n"
    heading = ["#Cluster", "Name", "#Broker", "Name", "#BID", "#Addr"]
    both = [["c1", "broker-a", "0", "127.10.0.1:10911"], ["c1", "broker-a", "1", "127.10.0.2:10911"]]
    assert mqns("clusterList").words == [heading, *both]
    assert mqns("clusterList", "-c", "c1").words == [heading, *both]
    assert mqns("clusterList", "-c", "NoSuch").words == [heading]
    assert mqns("clusterList", "-o", "json").document == mqns("brokers", "-o", "json").document


@pytest.mark.parametrize(("cluster", "left"), [(("-c", "c1"), False), (("-c", "NoSuch"), True), ((), False)])
def test_delete_topic(scenes: list[Scene], mqns_both: Mqns, cluster: tuple[str, ...], left: bool) -> None:
    for scene in scenes:
        scene.f1()
    ended = mqns_both("deleteTopic", "-t", "TA", *cluster)
    assert (ended.code, ended.out) == (ExitCode.OK, "delete topic [TA] from NameServer success.\n")
    assert [scene.has_route("TA") for scene in scenes] == [left, left]
    assert scenes[0].has_route("TB")


def test_kv_and_order_configuration(scenes: list[Scene], mqns: Mqns, mqns_both: Mqns) -> None:
    second = address(scenes[1].server)
    assert mqns_both("updateKvConfig", "-s", "space", "-k", "key", "-v", "-v").words[0][:3] == [
        "create",
        "or",
        "update",
    ]
    assert mqns("kv", "get", "space", "key", "-n", second).out == "-v\n"
    assert mqns_both("deleteKvConfig", "-s", "space", "-k", "key").out.endswith("namespace success.\n")
    assert mqns("kv", "get", "space", "key", "-n", second).code == ExitCode.REFUSED

    put = mqns_both("updateOrderConf", "-t", "TA", "-m", "put", "-v", "broker-a:2")
    assert put.out == "update orderConf success. topic=[TA], orderConf=[broker-a:2]\n"
    got = mqns("updateOrderConf", "-t", "TA", "-m", "get", "-n", second)
    assert got.out == "get orderConf success. topic=[TA], orderConf=[broker-a:2] \n"
    assert mqns_both("updateOrderConf", "-t", "TA", "-m", "delete").out == (
        "delete orderConf success. topic=[TA]\n"
    )
    gone = mqns("updateOrderConf", "-t", "TA", "-m", "get", "-n", second)
    assert (gone.code, gone.err) == (
        ExitCode.REFUSED,
        "mqns: No config item, Namespace: ORDER_TOPIC_CONFIG Key: TA\n",
    )
    assert mqns("updateOrderConf", "-t", "TA", "-m", "put").code == ExitCode.WRONG_USAGE
    assert mqns("updateOrderConf", "-t", "TA", "-m", "other").code == ExitCode.WRONG_USAGE


def test_write_permission(scenes: list[Scene], mqns_both: Mqns) -> None:
    scenes[0].f1()
    first, second = (address(scene.server) for scene in scenes)
    for command, word, perm in (("wipeWritePerm", "wipe", 4), ("addWritePerm", "add", 6)):
        assert mqns_both(command, "-b", "broker-a").out.splitlines() == [
            f"{word} write perm of broker[broker-a] in name server[{first}] OK, 2",
            f"{word} write perm of broker[broker-a] in name server[{second}] OK, 0",
        ]
        assert scenes[0].perms("TA") == {"broker-a": perm}


def test_configuration(scenes: list[Scene], mqns_both: Mqns) -> None:
    first, second = (address(scene.server) for scene in scenes)
    reported = mqns_both("updateNamesrvConfig", "-k", "enableTopicList", "-v", "true").out
    assert reported == f"update name server config success![{first}, {second}]\nenableTopicList : true\n"
    lines = mqns_both("getNamesrvConfig").out.splitlines()
    assert [line for line in lines if "===" in line] == [
        f"============{a}============" for a in (first, second)
    ]
    assert lines.count(f"{'enableTopicList':<50}=  true") == 2
