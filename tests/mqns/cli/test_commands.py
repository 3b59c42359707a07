"""Each command against a name server."""

import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.broker import Topic
from testbed.nameserver import NameServer
from testbed.scene import Scene
from tests.mqns.cli.conftest import Mqns, address, http_side, run


def test_several_routes_some_of_them_absent(ns: Scene, mqns: Mqns) -> None:
    ns.f3()
    ended = mqns("routes", "TA", "NoSuch", "TC", "Neither", "-o", "json")
    assert (ended.code, ended.err) == (ExitCode.REFUSED, "mqns: no route of NoSuch, Neither\n")
    assert [(route["topic"], [q["brokerName"] for q in route["queueDatas"]]) for route in ended.document] == [
        ("TA", ["broker-a", "broker-b"]),
        ("TC", ["broker-b"]),
    ]


def test_clusters(ns: Scene, mqns: Mqns) -> None:
    ns.f2()
    ns.f3()
    assert mqns("clusters", "-o", "json").document == [
        {"cluster": "c1", "brokerNames": ["broker-a", "broker-b"], "masters": 2, "slaves": 1}
    ]
    assert mqns("clusters").words[1] == ["c1", "2", "2", "1", "broker-a", "broker-b"]


def test_brokers(ns: Scene, mqns: Mqns) -> None:
    ns.f2(zone="z1", acting=True)
    listed = mqns("brokers", "-o", "json").document
    common = {"cluster": "c1", "brokerName": "broker-a", "enableActingMaster": True, "zoneName": "z1"}
    assert listed == [
        common | {"brokerId": 0, "brokerAddr": "127.10.0.1:10911", "role": "master"},
        common | {"brokerId": 1, "brokerAddr": "127.10.0.2:10911", "role": "slave"},
    ]
    assert mqns("brokers", "--cluster", "c1").words[1:] == [
        ["c1", "broker-a", "0", "127.10.0.1:10911", "master", "enabled", "z1"],
        ["c1", "broker-a", "1", "127.10.0.2:10911", "slave", "enabled", "z1"],
    ]


@pytest.mark.parametrize(
    ("arguments", "topics"),
    [
        ((), ["Both", "None", "Sub", "Unit"]),
        (("--cluster", "c1"), ["Both", "None", "Sub", "Unit"]),
        (("--cluster", "other"), []),
        (("--kind", "system"), ["broker-a", "c1"]),
        (("--kind", "unit"), ["Both", "Unit"]),
        (("--kind", "unit-sub"), ["Both", "Sub"]),
        (("--kind", "unit-sub-only"), ["Sub"]),
        (("--prefix", "U"), ["Unit"]),
        (("--prefix", "%RETRY%"), []),
        (("--kind", "unit", "--prefix", "B"), ["Both"]),
        (("--cluster", "c1", "-p", "S"), ["Sub"]),
    ],
)
def test_topics(ns: Scene, mqns: Mqns, arguments: tuple[str, ...], topics: list[str]) -> None:
    flags = {"None": 0, "Unit": 1, "Sub": 2, "Both": 3}
    ns.f1(topics=tuple(Topic(name, flag=flag) for name, flag in flags.items()))
    assert mqns("topics", *arguments, "-o", "json").document == topics
    assert mqns("topics", *arguments).out.splitlines() == topics


def test_a_cluster_without_topics_is_named(ns: Scene, mqns: Mqns) -> None:
    ended = mqns("topics", "--cluster", "c2")
    said = "mqns: no topic of cluster c2; `mqns clusters` lists the names of clusters\n"
    assert (ended.code, ended.out, ended.err) == (ExitCode.OK, "", said)
    assert mqns("brokers", "--cluster", "").err == "mqns: no cluster ''\n"


def test_permissions_of_a_broker_without_topics_are_named(ns: Scene, mqns: Mqns) -> None:
    ns.f1()
    ended = mqns("permissions", "wipe", "broker-a", "broker-x")
    assert [words[1:] for words in ended.words[1:]] == [["broker-a", "2"], ["broker-x", "0"]]
    assert (ended.code, ended.err) == (
        ExitCode.OK,
        "mqns: no topic of broker broker-x; `mqns brokers` lists the names of brokers\n",
    )


def test_topics_with_their_routes(ns: Scene, mqns: Mqns) -> None:
    ns.f3()
    listed = mqns("topics", "--routes", "-o", "json").document
    assert listed == mqns("routes", "TA", "TB", "TC", "-o", "json").document
    assert mqns("topics", "--routes").out == mqns("routes", "TA", "TB", "TC").out
    assert mqns("topics", "--routes", "--prefix", "TB").out == mqns("routes", "TB").out


def test_kv_is_set_and_deleted_everywhere(scenes: list[Scene], mqns: Mqns, mqns_both: Mqns) -> None:
    servers = [address(scene.server) for scene in scenes]
    changed = mqns_both("kv", "set", "changed", "k", "v", "-o", "json").document
    assert changed == {"namespace": "changed", "key": "k", "value": "v", "nameServers": servers}
    for server in servers:
        assert mqns("kv", "get", "changed", "k", "-n", server).out == "v\n"
        listed = mqns("kv", "list", "changed", "-o", "json", "-n", server).document
        assert listed == {"namespace": "changed", "table": {"k": "v"}}
    document = {"namespace": "changed", "key": "k", "value": "v"}
    assert mqns("kv", "get", "changed", "k", "-o", "json").document == document
    assert mqns_both("kv", "delete", "changed", "k").words == [
        ["deleted", "in", server] for server in servers
    ]
    for server in servers:
        assert mqns("kv", "get", "changed", "k", "-n", server).code == ExitCode.REFUSED
        assert mqns("kv", "list", "changed", "-o", "json", "-n", server).document["table"] == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_http_side_is_asked_by_address_and_by_name(ns: Scene, mqns: Mqns, host: str) -> None:
    url = http_side(ns.server).replace("127.0.0.1", host)
    assert host in url
    assert mqns("kv", "set", "hosts", host, "1", "--http", url).out == f"set in {url}\n"
    assert mqns("kv", "get", "hosts", host, "--http", url).out == "1\n"
    assert mqns("events", "--http", url, "--kind", "kv_changed").code == ExitCode.OK


def test_kv_is_changed_under_conditions(ns: Scene, mqns: Mqns) -> None:
    http = ("--http", http_side(ns.server))
    key = ("conditions/1", "%RETRY%/k")
    assert mqns("kv", "set", *key, "1", *http, "--if-absent").out == f"set in {http[1]}\n"
    first = mqns("kv", "get", *key, *http, "-o", "json").document
    assert first == {"namespace": key[0], "key": key[1], "value": "1", "etag": first["etag"]}
    assert mqns("kv", "get", *key, *http).out == "1\n"
    unquoted = first["etag"].strip('"')
    assert mqns("kv", "set", *key, "2", *http, "--if-match", unquoted, "-o", "json").document == {
        "namespace": key[0],
        "key": key[1],
        "value": "2",
        "http": http[1],
        "changed": True,
    }
    second = mqns("kv", "get", *key, *http, "-o", "json").document["etag"]
    for refused in (
        ("set", "3", "--if-match", first["etag"]),
        ("set", "3", "--if-absent"),
        ("delete", "--if-match", unquoted),
    ):
        ended = mqns("kv", refused[0], *key, *refused[1:], *http)
        assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
        assert f"has the entity tag {second[1:-1]}: the condition does not hold" in ended.err
    assert mqns("kv", "set", *key, "2", *http, "--if-match", "*").out == f"already set in {http[1]}\n"
    assert mqns("kv", "get", *key).out == "2\n"
    assert mqns("kv", "delete", *key, *http, "--if-match", second).out == f"deleted in {http[1]}\n"
    for gone in (("get",), ("delete",)):
        assert mqns("kv", *gone, *key, *http).code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("set", "n", "k", "v", "--if-absent"), "--if-match and --if-absent need --http"),
        (("delete", "n", "k", "--if-match", "x"), "--if-match and --if-absent need --http"),
        (("set", "n", "k", "v", "--if-absent", "--if-match", "x", "--http", "h"), "not both"),
        (("set", "n", "k", "v", "--if-match", "", "--http", "h"), "--if-match: no ETag"),
        (("delete", "n", "k", "--if-match", "é", "--http", "h"), "--if-match: no ETag"),
        (("set", "n", "k", "v", "--if-match", "a\nb", "--http", "h"), "--if-match: no ETag"),
    ],
)
def test_conditions_that_are_none(arguments: tuple[str, ...], reason: str) -> None:
    ended = run("kv", *arguments)
    assert (ended.code, ended.out) == (ExitCode.WRONG_USAGE, "")
    assert reason in ended.err


def test_write_permission_is_taken_and_given_everywhere(
    scenes: list[Scene], mqns: Mqns, mqns_both: Mqns
) -> None:
    scenes[0].f1()
    servers = [address(scene.server) for scene in scenes]
    counts = [
        {"nameServer": server, "brokerName": "broker-a", "topicCount": count}
        for server, count in zip(servers, (2, 0), strict=True)
    ]
    assert mqns_both("permissions", "wipe", "broker-a", "-o", "json").document == counts
    assert scenes[0].perms("TA") == {"broker-a": 4}
    assert mqns_both("permissions", "add", "broker-a").words[1:] == [
        [servers[0], "broker-a", "2"],
        [servers[1], "broker-a", "0"],
    ]
    assert scenes[0].perms("TA") == {"broker-a": 6}


def test_config_that_was_not_set_is_told(servers: list[NameServer], mqns: Mqns, mqns_both: Mqns) -> None:
    ours, java = (address(server) for server in servers)
    ended = mqns_both("config", "set", "noSuchOption", "1")
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err == (
        f"mqns: not set: no option noSuchOption in {ours}; no option noSuchOption in {java}; "
        "options that a name server does not list are set at its start only\n"
    )
    ended = mqns("config", "set", "waitSecondsForService", "x")
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err == f"mqns: not set: waitSecondsForService is 45 in {ours}\n"
    for value in ("FALSE", " false "):
        assert mqns("config", "set", "orderMessageEnable", value).out.startswith(f"listed by {ours} (")
    assert mqns("config", "set", "waitSecondsForService", "+045").code == ExitCode.OK


@pytest.mark.parametrize("value", ["maybe", "1", " true"])
def test_a_flag_is_sent_no_other_text(servers: list[NameServer], mqns: Mqns, value: str) -> None:
    """Java, and so the name server, would take it as false."""
    assert mqns("config", "set", "orderMessageEnable", "true").code == ExitCode.OK
    ended = mqns("config", "set", "orderMessageEnable", value)
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert f"not set: {value!r} is neither true nor false, as orderMessageEnable is in" in ended.err
    assert mqns("config", "get", "orderMessageEnable").words[1:] == [
        [address(servers[0]), "orderMessageEnable", "true"]
    ]
    assert mqns("config", "set", "orderMessageEnable", "false").code == ExitCode.OK


@pytest.mark.parametrize(
    ("option", "value", "in_force", "words"),
    [
        ("waitSecondsForService", "45", "live", "in force at once"),
        ("serverWorkerThreads", "8", "never", "listed only, and never in force"),
    ],
)
def test_config_by_http_reports_when_it_is_in_force(
    servers: list[NameServer], option: str, value: str, in_force: str, words: str
) -> None:
    url = http_side(servers[0])
    command = ("config", "set", option, value, "--http", url)
    assert run(*command).out == f"set in {url}: {words}\n"
    assert run(*command, "-o", "json").document == {
        "key": option,
        "value": value,
        "http": url,
        "inForce": in_force,
    }


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("listenPort", "99999999", "99999999 is out of its range"),
        ("waitSecondsForService", "-5", "-5 is out of its range"),
        ("noSuchOption", "1", "no such option here"),
        ("maxBrokers", "5", "set at the start only, as MQNS_MAX_BROKERS or in the -c file"),
    ],
)
def test_config_by_http_refuses(servers: list[NameServer], option: str, value: str, why: str) -> None:
    ended = run("config", "set", option, value, "--http", http_side(servers[0]))
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert why in ended.err


def test_values_may_begin_with_a_hyphen(servers: list[NameServer], mqns: Mqns) -> None:
    """Options of every command are known behind such a value too."""
    assert mqns("kv", "set", "hyphens", "k", "-5").code == ExitCode.OK
    assert mqns("kv", "get", "hyphens", "k").words == [["-5"]]
    mqns("kv", "delete", "hyphens", "k")
    ended = mqns("config", "set", "waitSecondsForService", "-5", "-o", "json")
    mqns("config", "set", "waitSecondsForService", "45")
    assert ended.document["value"] == "-5"
    assert mqns("config", "set", "waitSecondsForService", "45", "--bogus").code == ExitCode.WRONG_USAGE


def test_config_is_read_and_set_everywhere(servers: list[NameServer], mqns: Mqns, mqns_both: Mqns) -> None:
    def values() -> list[str]:
        listed = mqns_both("config", "get", "enableTopicList", "-o", "json").document
        assert [d["nameServer"] for d in listed] == [address(server) for server in servers]
        return [d["config"]["enableTopicList"] for d in listed]

    assert values() == ["true", "true"]
    try:
        assert mqns_both("config", "set", "enableTopicList", "false").code == ExitCode.OK
        assert values() == ["false", "false"]
    finally:
        mqns_both("config", "set", "enableTopicList", "true")
    everything = mqns("config", "get", "-o", "json").document[0]["config"]
    assert everything["listenPort"]
    assert list(everything) == sorted(everything)
