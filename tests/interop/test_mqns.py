"""`mqns` against Java's name servers and ours: every command says the same of all; and it prints what "
"mqadmin prints."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from itertools import product
from typing import Any, Final

import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.broker import A1, A, B, Topic
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from testbed.rocketmq.admin import Admin
from testbed.rocketmq.brokers import BrokerConfig, start_brokers
from testbed.rocketmq.releases import Release, dashed
from testbed.rocketmq.servers import NameServer, serve, serve_4x
from testbed.rocketmq.stage import Stage
from tests.mqns.cli.conftest import Ended, run

OURS, JAVA_5, JAVA_4 = "ours", "java 5.5.0", "java 4.9.7"
TOPICS: Final = (
    Topic("TA"),
    Topic("TB", queues=4, perm=4),
    Topic("Unit", flag=1),
    Topic("Sub", flag=2),
    Topic("Both", flag=3),
)
BROKERS: Final = (A.but(topics=TOPICS), A1.but(topics=TOPICS), B)
PATIENTLY: Final = ("--timeout", "30")
COMMANDS: Final = [
    "clusters",
    "brokers",
    "brokers --cluster c1",
    "brokers --cluster NoSuch",
    "topics",
    "topics --cluster c1",
    "topics --cluster NoSuch",
    "topics --routes",
    "topics --kind system",
    "topics --kind unit",
    "topics --kind unit-sub",
    "topics --kind unit-sub-only",
    "routes TA TB",
    "routes TA NoSuch",
    "kv set SPACE key value",
    "kv set SPACE key2 a=b;c",
    "kv get SPACE key",
    "kv list SPACE",
    "kv delete SPACE key",
    "kv get SPACE key",
    "kv list SPACE",
    "kv list NOWHERE",
    "permissions wipe broker-a NoSuch",
    "routes TA TB",
    "permissions add broker-a NoSuch",
    "routes TA TB",
    "config get orderMessageEnable",
    "config set orderMessageEnable true",
    "config get orderMessageEnable",
    "updateOrderConf -t TA -m put -v broker-a:2",
    "updateOrderConf -t TA -m get",
    "routes TA",
    "doctor --recheck 0",
    "updateOrderConf -t TA -m delete",
    "updateOrderConf -t TA -m get",
    "config set orderMessageEnable false",
    "config get noSuchOption",
    "config set noSuchOption 1",
    "watch TA --count 1",
    "watch --count 1",
    "topicRoute -t TA",
    "topicRoute -t NoSuch",
    "topicList",
    "topicList -c",
    "topicClusterList -t TA",
    "clusterList",
    "clusterList -c c1",
    "updateKvConfig -s SPACE -k key -v value",
    "deleteKvConfig -s SPACE -k key",
    "wipeWritePerm -b broker-b",
    "addWritePerm -b broker-b",
    "updateNamesrvConfig -k orderMessageEnable -v false",
    "deleteTopic -t TB -c NoSuch",
    "routes TB",
    "deleteTopic -t TB -c c1",
    "routes TB",
    "deleteTopic -t Both",
    "routes Both",
]
"""In this order: what one changes, the next may show."""
PRINTED_ALIKE: Final = [
    "topicRoute -t TA",
    "topicRoute -t TA -l",
    "topicRoute -t TC -l",
    "topicList",
    "topicList -c",
    "topicClusterList -t TA",
    "clusterList",
    "clusterList -c c1",
    "clusterList -c NoSuch",
    "updateKvConfig -s SPACE -k key -v value",
    "deleteKvConfig -s SPACE -k key",
    "updateOrderConf -t TA -m put -v broker-a:2",
    "updateOrderConf -t TA -m get",
    "updateOrderConf -t TA -m delete",
    "wipeWritePerm -b broker-a",
    "topicRoute -t TA -l",
    "addWritePerm -b broker-a",
    "addWritePerm -b NoSuch",
    "getNamesrvConfig",
    "updateNamesrvConfig -k enableTopicList -v true",
]
OF_BROKERS: Final = {"clusterList": 76, "topicList -c": 72}
"""So many characters of a line come from name servers; what follows mqadmin asks brokers, and mqns leaves out."""


@pytest.fixture(scope="module")
def servers(stage: Stage) -> Iterator[Mapping[str, NameServer]]:
    """The three, with the same brokers; their connections stay, for Java forgets brokers without."""
    running = {
        OURS: serve(stage, "ours"),
        JAVA_5: serve(stage, "java"),
        JAVA_4: serve_4x(stage, "4.9.7"),
    }
    with ExitStack() as open_connections:
        for server in running.values():
            register(server, open_connections)
        yield running


def register(server: NameServer, open_connections: ExitStack) -> None:
    for broker in BROKERS:
        over = open_connections.enter_context(closing(Connection(server.port)))
        answer = broker.register(over, version=V5_3_3)
        assert answer.code == 0, answer.remark


def mqns(server: NameServer, line: str, *options: str) -> Ended:
    return run(*line.split(), "-n", server.address, *PATIENTLY, *options)


def said(server: NameServer, line: str) -> tuple[int, Any, str]:
    """What must not depend on the name server: exit code, document and complaint."""
    ended = mqns(server, line, "-o", "json")
    text, complaint = (stream.replace(server.address, "NAMESRV") for stream in (ended.out, ended.err))
    document: Any = json.loads(text) if text else None
    if line.startswith("doctor"):
        for seen in document["nameServers"]:
            del seen["version"], seen["answerMillis"]
    return ended.code, document, complaint


def test_every_command_says_the_same(servers: Mapping[str, NameServer]) -> None:
    for line in COMMANDS:
        ours = said(servers[OURS], line)
        for other in (JAVA_5, JAVA_4):
            assert said(servers[other], line) == ours, (line, other)
        assert ours[0] in (ExitCode.OK, ExitCode.REFUSED, ExitCode.FINDINGS), line


@pytest.mark.parametrize("whose", [OURS, JAVA_5, JAVA_4])
def test_ping_names_the_release(servers: Mapping[str, NameServer], whose: str) -> None:
    release = {OURS: "V5_5_0", JAVA_5: "V5_5_0", JAVA_4: "V4_9_7"}[whose]
    ended = mqns(servers[whose], "ping -c 2 -i 0")
    assert ended.code == ExitCode.OK
    assert ended.words[0][:3] == [f"{servers[whose].address}:", "seq=1", release]


def test_a_blacklisted_option(servers: Mapping[str, NameServer]) -> None:
    """The remark is the release's own."""
    for whose, remark in (
        (OURS, "answered code 16: Can not update config in black list."),
        (JAVA_5, "answered code 16: Can not update config in black list."),
        (JAVA_4, "answered code 16: Can not update config path"),
    ):
        ended = mqns(servers[whose], "config set kvConfigPath elsewhere")
        assert (ended.code, ended.err) == (ExitCode.REFUSED, f"mqns: {servers[whose].address} {remark}\n")


def test_doctor_compares_them(servers: Mapping[str, NameServer]) -> None:
    """A broker that only ours has; and that one of them is another release."""
    addresses = [servers[whose].address for whose in (OURS, JAVA_5, JAVA_4)]
    with closing(Connection(servers[OURS].port)) as over:
        lonely = A.but(name="lonely", addr="127.10.0.7:10911", topics=(Topic("TL"), Topic("TM")))
        assert lonely.register(over).code == 0
        ended = run("doctor", *addresses, "--recheck", "0", "-o", "json", *PATIENTLY)
        assert lonely.unregister(over).code == 0
    assert ended.code == ExitCode.FINDINGS
    findings = {finding["check"]: finding for finding in ended.document["findings"]}
    assert findings["broker-missing"]["nameServers"] == addresses[1:]
    assert findings["broker-missing"]["subjects"] == ["lonely", "127.10.0.7:10911"]
    assert findings["broker-missing"]["what"].endswith("2 topics unknown there because of it: TL, TM")
    assert findings["name-server-versions"]["subjects"] == ["V4_9_7", "V5_5_0"]
    assert "topic-missing" not in findings
    assert "queues-differ" not in findings


@pytest.mark.parametrize("java", [JAVA_5, JAVA_4])
def test_drift_from_javas_name_server(servers: Mapping[str, NameServer], java: str) -> None:
    """A broker that only ours has, and a key that only Java's has; where they agree, none."""
    pair = [servers[whose].address for whose in (OURS, java)]
    words = ("drift", *pair, "--kv", "drifting", "--grace", "0", "-o", "json", *PATIENTLY)
    agreeing = run(*words)
    assert (agreeing.code, agreeing.document["outcome"]) == (ExitCode.OK, "same"), agreeing
    with closing(Connection(servers[OURS].port)) as over:
        lonely = A.but(name="lonely", addr="127.10.0.7:10911", topics=(Topic("TL"), Topic("TM")))
        assert lonely.register(over).code == 0
        assert mqns(servers[java], "kv set drifting k v").code == ExitCode.OK
        ended = run(*words)
        assert lonely.unregister(over).code == 0
        assert mqns(servers[java], "kv delete drifting k").code == ExitCode.OK
    assert (ended.code, ended.document["outcome"]) == (ExitCode.FINDINGS, "drift"), ended
    assert ended.document["counts"] == {"broker-missing": 1, "kv-differs": 1}
    assert [one["subject"] for one in ended.document["examples"]] == ["lonely 127.10.0.7:10911", "drifting k"]


def test_doctor_has_no_complaint_about_real_brokers(
    stage: Stage, release_5: Release, release_4: Release
) -> None:
    """As they come; but they are on this machine, and make topics on demand."""
    both = [serve(stage, "ours", name="ours-real"), serve(stage, "java", name="java-real")]
    configs = [BrokerConfig(of, f"real-{dashed(of.version)}") for of in (release_5, release_4)]
    start_brokers(stage, both, configs)
    for server, config in product(both, configs):
        server.await_brokers(config.name, 0)
    ended = run("doctor", *(server.address for server in both), "-o", "json", *PATIENTLY)
    assert {(finding["severity"], finding["check"]) for finding in ended.document["findings"]} == {
        ("warning", "address-loopback"),
        ("info", "topics-made-on-demand"),
        ("info", "leases-not-told"),
    }
    assert ended.code == ExitCode.OK
    assert ended.document["brokersConnectedTo"] == 2
    drift = run("drift", *(server.address for server in both), "-o", "json", *PATIENTLY)
    assert (drift.code, drift.document["outcome"]) == (ExitCode.OK, "same"), drift


def test_it_prints_what_mqadmin_prints(
    servers: Mapping[str, NameServer], stage: Stage, release_5: Release
) -> None:
    admin = Admin(stage, release_5)
    with closing(admin), ExitStack() as open_connections:
        register(servers[OURS], open_connections)  # again, with what other tests have deleted
        register(servers[JAVA_5], open_connections)
        for whose in (OURS, JAVA_5):
            server = servers[whose]
            eventually(partial(server.route, "TB"))
            for line in PRINTED_ALIKE:
                theirs = shared(line, admin(server, *line.split()).out, ordered=whose == OURS)
                own = shared(line, mqns(server, line).out, ordered=whose == OURS)
                assert own == theirs, (whose, line)
        deleted = admin(servers[OURS], "deleteTopic", "-c", "NoSuch", "-t", "TA").out.splitlines()
        assert mqns(servers[OURS], "deleteTopic -c NoSuch -t TA").out.splitlines() == deleted[-1:]


def shared(line: str, text: str, *, ordered: bool) -> list[str]:
    """The part of an output that name servers are asked for.

    Sorted where the order is that of a hash table: of mqadmin's own for options, of the name server for topics, of
    Java's for the brokers of a route."""
    width = next((width for command, width in OF_BROKERS.items() if line.startswith(command)), None)
    lines = [text[:width].rstrip() for text in text.rstrip("\n").split("\n")]
    if line.startswith(("getNamesrvConfig", "topicList")) or not ordered:
        return sorted(shown.rstrip(",") for shown in lines)
    return lines
