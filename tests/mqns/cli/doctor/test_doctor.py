"""The command, against name servers of ours and brokers that are sockets."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from mqns.cli.exit_codes import ExitCode
from testbed.broker import TB, A, B, Topic
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, Mqns, address, http_side, run
from tests.mqns.remoting.servers import served

BOUND_S = 15.0
Listening = Callable[[], str]


@pytest.fixture
def listening() -> Iterator[Listening]:
    """Gives addresses of brokers that answer the telephone, and no more."""
    opened: list[socket.socket] = []

    def listen() -> str:
        opened.append(socket.create_server(("127.0.0.1", 0)))
        return f"127.0.0.1:{opened[-1].getsockname()[1]}"

    yield listen
    for one in opened:
        one.close()


def doctor(scenes: list[Scene], *arguments: str) -> Ended:
    """Without the second look, which takes seconds."""
    servers = [address(scene.server) for scene in scenes]
    return run("doctor", *servers, "--recheck", "0", "-o", "json", *arguments)


def rules(ended: Ended, severity: str = "error") -> list[str]:
    """Of the findings of one severity."""
    return [finding["check"] for finding in ended.document["findings"] if finding["severity"] == severity]


def test_two_that_are_alike(scenes: list[Scene], listening: Listening) -> None:
    broker = A.but(addr=listening())
    for scene in scenes:
        broker.register(scene.k1)
    ended = doctor(scenes)
    assert ended.code == ExitCode.OK
    assert ended.document["counts"] == {"error": 0, "warning": 1, "info": 1}
    assert (rules(ended, "warning"), rules(ended, "info")) == (["address-loopback"], ["leases-not-told"])
    assert ended.document["brokersConnectedTo"] == 1
    assert [
        (
            reported["address"],
            reported["version"],
            reported["clusters"],
            reported["brokers"],
            reported["topics"],
        )
        for reported in ended.document["nameServers"]
    ] == [(address(scene.server), "V5_5_0", 1, 1, 2) for scene in scenes]
    assert doctor(scenes, "--fail-on", "warning").code == ExitCode.FINDINGS


def test_all_kinds_of_differences(scenes: list[Scene], listening: Listening, mqns: Mqns) -> None:
    first, second = scenes
    broker, other = A.but(addr=listening()), B.but(addr=listening())
    broker.register(first.k1)
    other.register(first.k1)
    broker.but(topics=(Topic("TA", queues=4), Topic("TD"))).register(second.k1)
    first.put_kv("ORDER_TOPIC_CONFIG", "TA", "broker-a:8")
    mqns("config", "set", "notifyMinBrokerIdChanged", "true")
    try:
        ended = doctor(scenes)
    finally:
        mqns("config", "set", "notifyMinBrokerIdChanged", "false")
    assert ended.code == ExitCode.FINDINGS
    assert rules(ended) == [
        "broker-missing",
        "kv-differs",
        "queues-differ",
        "topic-missing",
        "topic-missing",
    ]
    by_rule = {finding["check"]: finding for finding in ended.document["findings"]}
    assert by_rule["broker-missing"]["nameServers"] == [address(second.server)]
    assert by_rule["broker-missing"]["subjects"] == ["broker-b", other.addr]
    assert "1 topic unknown there because of it: TC" in by_rule["broker-missing"]["what"]
    assert by_rule["queues-differ"]["subjects"] == ["TA"]
    missing = [f for f in ended.document["findings"] if f["check"] == "topic-missing"]
    assert {tuple(f["nameServers"]): f["subjects"] for f in missing} == {
        (address(first.server),): ["TD"],
        (address(second.server),): ["TB"],
    }
    assert by_rule["name-server-options"]["subjects"] == ["notifyMinBrokerIdChanged"]
    assert doctor(scenes, "--fail-on", "never").code == ExitCode.OK


def test_a_broker_that_does_not_answer(ns: Scene) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        addr = f"127.0.0.1:{bound.getsockname()[1]}"
        A.but(addr=addr).register(ns.k1)
        ended = doctor([ns])
        (unreachable,) = (f for f in ended.document["findings"] if f["check"] == "broker-unreachable")
        assert unreachable["what"] == f"broker-a (id 0) at {addr}: no connection: Connection refused"
        assert ended.code == ExitCode.FINDINGS
        unconnected = doctor([ns], "--no-connect")
        assert (rules(unconnected), unconnected.document["brokersConnectedTo"]) == ([], 0)


def test_names_and_addresses_that_are_no_good(ns: Scene) -> None:
    A.but(addr="no-such-name.invalid:10911").register(ns.k1)
    B.but(addr="172.17.0.2:10911").register(ns.k1)
    assert "address-container" in rules(doctor([ns], "--no-connect"))
    A.but(addr="no-such-name.invalid:10911").register(ns.k1)
    B.but(addr="172.17.0.2:10911").unregister(ns.k1)
    assert rules(doctor([ns])) == ["address-unresolved"]


def test_without_routes(ns: Scene, listening: Listening) -> None:
    A.but(addr=listening(), topics=(Topic("TA", perm=4), TB)).register(ns.k1)
    assert "topic-not-writable" in rules(doctor([ns]), "warning")
    assert "topic-not-writable" not in rules(doctor([ns], "--no-routes"), "warning")


def test_a_name_server_is_silent(
    scenes: list[Scene], listening: Listening, unreachable: str, silent: str
) -> None:
    A.but(addr=listening()).register(scenes[0].k1)
    ended = doctor(scenes[:1], unreachable)
    assert (ended.code, rules(ended)) == (ExitCode.FINDINGS, ["name-server-silent"])
    for where, timeout, code in (
        (unreachable, "5", ExitCode.UNREACHABLE),
        (silent, "0.1", ExitCode.TIMED_OUT),
    ):
        alone = doctor([], where, "--timeout", timeout)
        assert (alone.code, rules(alone)) == (code, ["name-server-silent"])


def test_what_is_at_an_address_where_no_name_server_answers(ns: Scene, silent: str, unreachable: str) -> None:
    url = http_side(ns.server)
    cases = {
        url.removeprefix("http://"): ("port-is-http", "this is the HTTP port, remoting is usually 9876"),
        silent: ("name-server-silent", "the port is open, and nothing came"),
        unreachable: ("name-server-silent", "not connected: Connection refused"),
    }
    for where, (check, what) in cases.items():
        began = time.monotonic()
        (finding,) = doctor([], where, "--timeout", "1").document["findings"]
        assert finding["check"] == check
        assert finding["what"].startswith(what)
        assert time.monotonic() - began < BOUND_S


def test_an_address_where_another_protocol_is_spoken() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await reader.read()
        writer.close()

    with served(greet) as where:
        (finding,) = doctor([], where).document["findings"]
    assert finding["what"].startswith("the port is open, and does not speak RocketMQ's protocol")


def test_a_remoting_port_that_is_given_as_http(ns: Scene) -> None:
    (finding,) = doctor([ns], "--http", address(ns.server)).document["findings"]
    assert (finding["check"], finding["subjects"]) == ("port-is-remoting", [f"http://{address(ns.server)}"])
    assert finding["command"] == f"mqns doctor {address(ns.server)} --http http://127.0.0.1:8080"


def test_no_connection_to_brokers_is_begun_after_a_while(
    ns: Scene, listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    A.but(addr=listening()).register(ns.k1)
    monkeypatch.setattr("mqns.cli.doctor.collect.PROBES_S", 0.0)
    ended = doctor([ns])
    assert ended.document["brokersConnectedTo"] == 0
    assert "not-asked" in rules(ended, "info")


def test_lists_that_are_refused_are_no_difference(
    scenes: list[Scene], listening: Listening, mqns: Mqns
) -> None:
    """The first lists no topics; its routes of those that the second lists are compared all the same."""
    broker = A.but(addr=listening())
    broker.register(scenes[0].k1)
    broker.but(topics=(Topic("TA", queues=2), TB)).register(scenes[1].k1)
    mqns("config", "set", "enableAllTopicList", "false")
    try:
        ended = doctor(scenes)
    finally:
        mqns("config", "set", "enableAllTopicList", "true")
    assert rules(ended) == ["queues-differ"]
    assert [server["topics"] for server in ended.document["nameServers"]] == [None, 2]
    (refused,) = (f for f in ended.document["findings"] if f["check"] == "not-compared")
    assert (refused["subjects"], refused["nameServers"]) == (
        ["list of topics"],
        [address(scenes[0].server)],
    )


def test_what_http_adds(
    launch: Callable[..., NameServer], listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on the second page."""
    monkeypatch.setattr("mqns.cli.doctor.http_side.PAGE", 1)
    server = launch(httpPort="0")
    url = http_side(server)
    scene = Scene(server)
    try:
        future = A.but(addr=listening(), timestamp=4_000_000_000_000, timeout_ms=600_000)
        future.register(scene.k1)
        future.but(name="broker-b", addr=listening()).register(scene.k1)
        ended = doctor([scene], "--http", url)
        assert rules(ended, "info") == []
        assert rules(ended, "warning") == [*["address-loopback"] * 2, *["broker-clock-ahead"] * 2]
        by_variable = run("doctor", address(server), "--recheck", "0", "-o", "json", env={"MQNS_HTTP": url})
        assert rules(by_variable, "warning") == rules(ended, "warning")
        unheard = doctor([scene], "--http", "127.0.0.1:1")
        (dark,) = (f for f in unheard.document["findings"] if f["severity"] == "error")
        assert (dark["check"], dark["command"]) == ("http-silent", "curl -sm 5 http://127.0.0.1:1/readyz")
        assert "the name server finds about itself is missing here" in dark["what"]
    finally:
        scene.clear()


def test_a_name_server_that_clients_learn_and_do_not_reach(
    launch: Callable[..., NameServer], unreachable: str
) -> None:
    server = launch(httpPort="0", discoveryAddress=unreachable)
    ended = doctor([Scene(server)], "--http", http_side(server))
    (found,) = (f for f in ended.document["findings"] if f["check"] == "discovery-unreachable")
    assert found["subjects"] == [unreachable]
    assert f"{unreachable} (no connection: Connection refused)" in found["what"]
    assert rules(doctor([Scene(server)], "--no-connect", "--http", http_side(server)), "warning") == []


def test_a_drain_is_not_taken_for_permissions_that_were_taken(
    ns: Scene, listening: Listening, unreachable: str
) -> None:
    """By the HTTP side; without it, it may be either."""
    url = http_side(ns.server)
    A.but(addr=listening()).register(ns.k1)
    why = ("--owner", "alice", "--reason", "kernel upgrade", "--http", url)
    assert run("drain", "broker-a", *why).code == ExitCode.OK
    try:
        eventually(lambda: ns.perms("TA") == {"broker-a": 4})
        (drained,) = (f for f in doctor([ns], "--http", url).document["findings"] if "broker" in f["check"])
        assert (drained["check"], drained["subjects"]) == ("broker-drained", ["broker-a"])
        assert drained["what"].endswith(", without an end: kernel upgrade)")
        for http in ((), ("--http", unreachable)):
            (wiped,) = (f for f in doctor([ns], *http).document["findings"] if "broker" in f["check"])
            assert (wiped["check"], wiped["subjects"]) == ("broker-wiped", ["broker-a"])
            assert "or it is drained" in wiped["what"]
    finally:
        assert run("undrain", "broker-a", "--http", url).code == ExitCode.OK


def test_kv_namespaces_are_compared_if_named(scenes: list[Scene], mqns: Mqns) -> None:
    mqns("kv", "set", "doctored", "key", "value")
    try:
        assert "kv-differs" not in rules(doctor(scenes), "warning")
        assert "kv-differs" in rules(doctor(scenes, "--kv", "doctored"), "warning")
    finally:
        mqns("kv", "delete", "doctored", "key")


def test_the_table_says_all_of_it(ns: Scene, listening: Listening) -> None:
    broker = A.but(addr=listening())
    broker.register(ns.k1)
    ended = run("doctor", address(ns.server), "--recheck", "0")
    assert ended.words[0] == ["NAME", "SERVER", "RELEASE", "ANSWER", "MS", "CLUSTERS", "BROKERS", "TOPICS"]
    assert ended.words[1][:2] == [address(ns.server), "V5_5_0"]
    lines = ended.out.splitlines()
    at = lines.index(f"WARNING address-loopback at {address(ns.server)}")
    assert lines[at + 1].startswith("  broker-a (id 0) registered ")
    assert lines[at + 2].startswith("  why: brokerIP1 is such an address")
    assert lines[at + 3].startswith("  -> Set brokerIP1")
    assert lines[at + 4] == f"  $ mqns -n {address(ns.server)} brokers"
    assert ended.out.endswith("0 errors, 1 warning, 1 info\n")


def test_a_difference_is_looked_at_twice(
    scenes: list[Scene], listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two looks the broker arrives at the other name server, as registrations do."""
    broker = A.but(addr=listening())
    broker.register(scenes[0].k1)

    async def arrives(_: float) -> None:
        broker.register(scenes[1].k1)

    monkeypatch.setattr("mqns.cli.doctor.command.wait", arrives)
    servers = [address(scene.server) for scene in scenes]
    ended = run("doctor", *servers, "--recheck", "0.1", "-o", "json")
    assert (ended.code, rules(ended)) == (ExitCode.OK, [])


def test_wrong_numbers_of_urls() -> None:
    ended = run("doctor", "127.0.0.1:1", "--http", "a", "--http", "b")
    assert (ended.code, ended.err) == (
        ExitCode.WRONG_USAGE,
        "mqns: 2 of --http for 1 name server: one, or one for each\n",
    )


def test_an_http_side_alone(scenes: list[Scene], unreachable: str) -> None:
    """As through `kubectl port-forward`: no name server is named, and none is asked for."""
    A.register(scenes[0].k1)
    url = http_side(scenes[0].server)
    alone: dict[str, str | None] = {"NAMESRV_ADDR": None}
    # it learns of the registration by the stream
    eventually(lambda: run("doctor", "--http", url, "--fail-on", "warning", env=alone).code == ExitCode.OK)
    ended = run("doctor", "--http", url, "-o", "json", env=alone)
    assert ended.document["findings"] == []
    (row,) = ended.document["nameServers"]
    assert (row["address"], row["failure"], row["version"], row["brokers"]) == (url, None, None, None)
    with_variable = run("doctor", "-o", "json", env=alone | {"MQNS_HTTP": url})
    assert [row["address"] for row in with_variable.document["nameServers"]] == [url]
    A.but(name="slave", id=1, addr="127.10.0.1:10921").register(scenes[0].k1)
    eventually(
        lambda: "broker-without-master" in rules(run("doctor", "--http", url, "-o", "json", env=alone))
    )
    remoting = address(scenes[0].server)
    (wrong,) = run("doctor", "--http", remoting, "-o", "json", env=alone).document["findings"]
    assert wrong["command"] == f"mqns doctor {remoting} --http http://127.0.0.1:8080"
    silent = run("doctor", "--http", f"http://{unreachable}", "-o", "json", env=alone)
    assert (silent.code, rules(silent)) == (ExitCode.UNREACHABLE, ["http-silent"])


def test_an_http_side_that_wants_a_token(scenes: list[Scene]) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        ready = b'{"nowMillis":%d}' % (time.time() * 1000)
        denied = b'{"type":"urn:redis-namesrv:unauthenticated","detail":"access denied: audit needs token"}'
        status, body = (b"200 OK", ready) if b" /readyz " in request else (b"401 Unauthorized", denied)
        head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        writer.close()

    with served(refuse) as address:
        ended = run("doctor", "--http", f"http://{address}", "-o", "json", env={"NAMESRV_ADDR": None})
    assert rules(ended, "warning") == ["http-denied"]
    (finding,) = ended.document["findings"]
    assert "access denied: audit needs token" in finding["what"]
    assert "--token-file" in finding["advice"]
