"""The doctor's checks: rows of facts, and what is found in them."""

from typing import Any

import msgspec
import pytest

from mqns.cli.doctor import addresses, brokers, differences, discovery, servers, serving, store, topics
from mqns.cli.doctor.facts import (
    BrokerLease,
    Facts,
    HttpFacts,
    NameServerFacts,
    OwnFinding,
    Port,
    Probe,
)
from mqns.cli.doctor.findings import Finding, Severity, confirmed, in_order, named
from mqns.cli.doctor.rules import explained
from mqns.cli.drain_list import DrainDocument
from tests.mqns.cli.doctor.rows import ADDRESSES, QUEUES, A, B, C, Reported, probed, reported, server, without

ORDER = "ORDER_TOPIC_CONFIG"
BOTH = (A, B)
E, W, I = "error", "warning", "info"  # noqa: E741
BROKER_A = {"broker-a": ADDRESSES["broker-a"]}


def leases(*found: BrokerLease, now_ms: int = 1_000_000, **more: Any) -> dict[str, Any]:
    """Of a name server whose HTTP side was asked."""
    return {"http": HttpFacts("http://ns:8080", None, found, now_ms, **more)}


def drains(*found: DrainDocument) -> dict[str, Any]:
    """Of a name server whose HTTP side knows these."""
    return leases(drains=found)


def drain(name: str = "broker-a", **members: Any) -> DrainDocument:
    whole = DrainDocument(name, "c1", "alice", "upgrade", 1_700_000_000_000, None, 2, False)
    return msgspec.structs.replace(whole, **members)


def lease(state: str = "living", remaining_ms: int = 110_000, version_ms: int = 0) -> BrokerLease:
    return BrokerLease(
        "broker-a", 0, "10.0.0.1:10911", state, 120_000 - remaining_ms, remaining_ms, 120_000, version_ms
    )


@pytest.mark.parametrize(
    "check",
    [
        *(servers.check, serving.check, store.check, discovery.check),
        *(differences.check, addresses.check, topics.check),
    ],
    ids=lambda check: check.__module__,
)
def test_a_healthy_set_up(check: Any) -> None:
    probes = probed(address for by_id in ADDRESSES.values() for address in by_id.values())
    assert reported(check, server(A), server(B), probes=probes) == []


def test_a_healthy_set_up_whose_leases_are_listed() -> None:
    assert reported(brokers.check, server(A, **leases(lease())), server(B, **leases(lease()))) == []


SERVERS: list[tuple[str, list[NameServerFacts], list[Reported]]] = [
    ("silent", [server(A, failure="refused"), server(B)], [(E, "name-server-silent", (A,), (A,))]),
    ("HTTP", [server(A, failure="HTTP", port=Port.HTTP), server(B)], [(E, "port-is-http", (A,), (A,))]),
    (
        "remoting as HTTP",
        [server(A, http=HttpFacts("http://ns:9876", "closed", is_remoting=True))],
        [(W, "port-is-remoting", (A,), ("http://ns:9876",))],
    ),
    (
        "an HTTP side that is silent, of two",
        [
            server(address, http=HttpFacts("http://ns:8080", "no whole answer within 5 s", port=Port.MUTE))
            for address in BOTH
        ],
        [(E, "http-silent", BOTH, ("http://ns:8080",))],
    ),
    (
        "an HTTP side that admits other callers",
        [server(A, http=HttpFacts("http://ns:8080", "status 403", refused_kind="forbidden"))],
        [(W, "http-denied", (A,), ("http://ns:8080",))],
    ),
    (
        "an HTTP side that is closed, of a name server that is, too",
        [server(A, failure="refused", http=HttpFacts("http://ns:8080", "refused", port=Port.CLOSED))],
        [(E, "name-server-silent", (A,), (A,)), (E, "http-silent", (A,), ("http://ns:8080",))],
    ),
    ("slow", [server(A, answer_s=1.5), server(B, answer_s=0.5)], [(W, "name-server-slow", (A,), (A,))]),
    (
        "versions",
        [server(A, version="V4_9_7"), server(B), server(C)],
        [(W, "name-server-versions", (A, B, C), ("V4_9_7", "V5_5_0"))],
    ),
    (
        "options that are felt, that are not, and of one's own",
        [
            server(
                A,
                config={
                    "orderMessageEnable": "true",
                    "serverWorkerThreads": "8",
                    "listenPort": "1",
                    "x": "1",
                },
            ),
            server(B, config={"orderMessageEnable": "false", "serverWorkerThreads": "4", "listenPort": "2"}),
        ],
        [
            (W, "name-server-options", BOTH, ("orderMessageEnable",)),
            (I, "name-server-options", BOTH, ("serverWorkerThreads",)),
        ],
    ),
    (
        "options that are not reported",
        [server(A, config=None), server(B, config={"orderMessageEnable": "true"})],
        [],
    ),
    (
        "harmful options",
        [server(A, config={"deleteTopicWithBrokerRegistration": "TRUE", "clusterTest": "false"})],
        [(W, "option-harmful", (A,), ("deleteTopicWithBrokerRegistration",))],
    ),
    (
        "clocks",
        [
            server(A, **leases(clock_ahead_s=1.5, clock_within_s=0.1)),
            server(B, **leases(clock_ahead_s=-1.5, clock_within_s=1.0)),
            server(C, **leases(clock_ahead_s=-9.0, clock_within_s=1.0)),
        ],
        [(W, "clock-skew", (A,), (A,)), (W, "clock-skew", (C,), (C,))],
    ),
]


@pytest.mark.parametrize(("facts", "expected"), [row[1:] for row in SERVERS], ids=[row[0] for row in SERVERS])
def test_name_servers(facts: list[NameServerFacts], expected: list[Reported]) -> None:
    assert reported(servers.check, *facts) == expected


NOW = 1_795_255_839_049
OWN = OwnFinding(
    "jobs-late",
    "warning",
    "a job is late",
    "none runs",
    "See.",
    'curl -s "$MQNS_HTTP"/v1/x',
    ("expire_brokers",),
)

HOLD = msgspec.structs.replace(OWN, check="leases-held")


def own(**more: Any) -> dict[str, Any]:
    """Of a name server that finds this about itself."""
    return leases(now_ms=NOW, findings=(msgspec.structs.replace(OWN, **more),))


def test_what_name_servers_find_about_themselves_is_shown_once() -> None:
    """With their own texts, at the HTTP side that was given for both; a command has its URL."""
    (finding,) = explained(store.check(Facts((server(A, **own()), server(B, **own())))), Facts(()))
    assert finding == Finding(
        Severity.WARNING,
        "jobs-late",
        "a job is late",
        ("http://ns:8080",),
        ("expire_brokers",),
        "See.",
        "none runs",
        "curl -s http://ns:8080/v1/x",
    )


@pytest.mark.parametrize("check", sorted(store.OF_ROUTES))
def test_what_routes_show_is_left_to_them(check: str) -> None:
    assert reported(store.check, server(A, **own(check=check))) == []


def test_a_worker_that_says_itself_that_it_follows_late_is_found_once() -> None:
    late = own(check="follower-late", subjects=(), severity="error")
    assert reported(store.check, server(A, **late)) == [(E, "follower-late", (A,), (A,))]
    assert reported(store.check, server(A, not_ready="the event stream was not read for 7.0 s", **late)) == []


def test_a_finding_about_the_store_is_about_the_name_server() -> None:
    assert reported(store.check, server(A, **own(subjects=(), severity="error"))) == [
        (E, "jobs-late", (A,), (A,))
    ]


LONELY = {"TC": {"broker-b": (8, 8, 6)}}
DIFFERENCES: list[tuple[str, list[NameServerFacts], list[Reported]]] = [
    ("one alone", [server(A)], []),
    ("one is silent", [server(A), server(B, failure="refused", brokers={}, queues={})], []),
    (
        "a slave is missing",
        [server(A), server(B, ADDRESSES | {"broker-a": {0: "10.0.0.1:10911"}})],
        [(E, "broker-missing", (B,), ("broker-a", "10.0.0.2:10911"))],
    ),
    (
        "a broker and therefore its topics are missing",
        [
            server(A, queues=QUEUES | LONELY),
            server(B, BROKER_A, {"TA": {"broker-a": (8, 8, 6)}, "TB": QUEUES["TB"]}),
        ],
        [(E, "broker-missing", (B,), ("broker-b", "10.0.0.3:10911"))],
    ),
    (
        "missing at two of three",
        [server(A), server(B, {}, {}), server(C, {}, {})],
        [
            (E, "broker-missing", (B, C), ("broker-a", "10.0.0.1:10911", "10.0.0.2:10911")),
            (E, "broker-missing", (B, C), ("broker-b", "10.0.0.3:10911")),
        ],
    ),
    (
        "two brokers of one name and id",
        [server(A), server(B, ADDRESSES | {"broker-b": {0: "10.0.0.4:10911"}})],
        [(E, "broker-conflict", BOTH, ("broker-b",))],
    ),
    (
        "clusters",
        [server(A), server(B, cluster="c2")],
        [(E, "broker-cluster-differs", BOTH, (name,)) for name in ADDRESSES],
    ),
    (
        "a topic is missing although its broker is there",
        [server(A), server(B, queues=without(QUEUES, "TB"))],
        [(E, "topic-missing", (B,), ("TB",))],
    ),
    ("topics are not listed", [server(A), server(B, queues=without(QUEUES, "TB"), topics=None)], []),
    (
        "a broker's queues are missing",
        [server(A), server(B, queues=QUEUES | {"TA": {"broker-a": (8, 8, 6)}})],
        [(E, "queues-missing", (B,), ("TA",))],
    ),
    (
        "queues of several topics differ alike",
        [
            server(A),
            server(
                B,
                queues={"TA": {"broker-a": (8, 8, 4), "broker-b": (8, 8, 6)}, "TB": {"broker-a": (4, 4, 4)}},
            ),
        ],
        [(E, "queues-differ", BOTH, ("TA", "TB"))],
    ),
    (
        "queues differ in several ways",
        [
            server(A),
            server(
                B,
                queues={"TA": {"broker-a": (9, 8, 6), "broker-b": (8, 8, 6)}, "TB": {"broker-a": (4, 2, 6)}},
            ),
        ],
        [(E, "queues-differ", BOTH, ("TA",)), (E, "queues-differ", BOTH, ("TB",))],
    ),
    (
        "KV",
        [
            server(A, kv={ORDER: {"T": "x", "U": "y"}, "N": {"k": "1"}}),
            server(B, kv={ORDER: {"U": "y"}, "N": {"k": "2"}}),
        ],
        [(W, "kv-differs", BOTH, ("N k",)), (E, "kv-differs", BOTH, (f"{ORDER} T",))],
    ),
]


@pytest.mark.parametrize(("facts", "expected"), [r[1:] for r in DIFFERENCES], ids=[r[0] for r in DIFFERENCES])
def test_differences(facts: list[NameServerFacts], expected: list[Reported]) -> None:
    assert reported(differences.check, *facts) == expected


def test_what_follows_from_a_missing_broker_is_reported_with_it() -> None:
    both = (server(A, queues=QUEUES | LONELY), server(B, BROKER_A, without(QUEUES, "TA")))
    (missing, *more) = differences.check(Facts(both))
    assert missing.what == (
        f"broker-b (10.0.0.3:10911) is not registered at {B}; 1 topic unknown there because of it: TC"
    )
    assert [finding.check for finding in more] == ["topic-missing"], "TA is served by broker-a too"


def test_advice_fits_what_differs() -> None:
    """A permission that was changed in one name server is changed in the others; queues are the broker's matter."""
    facts = [server(B, queues={"TB": {"broker-a": numbers}}) for numbers in ((4, 4, 4), (4, 2, 6))]
    perm, queues = (
        next(f.advice for f in differences.check(Facts((server(A), other))) if f.check == "queues-differ")
        for other in facts
    )
    assert "mqns permissions add broker-a" in perm
    assert "mqadmin updateTopic" in queues


@pytest.mark.parametrize(
    ("probes", "found"),
    [
        ({}, ()),
        ({"10.0.0.1:9876": Probe(("10.0.0.1",)), "ns:9876": Probe(())}, ()),
        ({"10.0.0.1:9876": Probe(("10.0.0.1",), "refused"), "ns:9876": Probe((), "unknown")}, (0, 1)),
        ({"10.0.0.1:9876": Probe(("10.0.0.1",)), "ns:9876": Probe((), "unknown")}, (1,)),
    ],
)
def test_name_servers_that_clients_learn_are_to_be_reached(
    probes: dict[str, Probe], found: tuple[int, ...]
) -> None:
    listed = ("10.0.0.1:9876", "ns:9876")
    facts = Facts((server(A, **leases(listed=listed)), server(B)), listed=probes)
    findings = [(f.check, f.name_servers, f.subjects) for f in discovery.check(facts)]
    assert findings == [("discovery-unreachable", (A,), tuple(listed[i] for i in found))][: len(found)]


ADDRESS: list[tuple[str, Probe | None, str, list[tuple[str, str]]]] = [
    # address, how it was reached, the name server's ip, severity and rule
    ("10.0.0.1:10911", Probe(("10.0.0.1",)), "10.9.0.1", []),
    ("10.0.0.1:10911", None, "10.9.0.1", []),
    ("10.0.0.1:10911", Probe(("10.0.0.1",), "refused"), "10.9.0.1", [(E, "broker-unreachable")]),
    ("broker:10911", Probe(("10.0.0.1",)), "10.9.0.1", []),
    ("broker:10911", None, "10.9.0.1", []),
    ("broker:10911", Probe((), "unknown"), "10.9.0.1", [(E, "address-unresolved")]),
    ("localhost:10911", Probe(("127.0.0.1",)), "10.9.0.1", [(E, "address-loopback")]),
    ("127.0.0.1:10911", None, "10.9.0.1", [(E, "address-loopback")]),
    ("127.0.0.1:10911", None, "127.0.0.1", [(W, "address-loopback")]),
    ("[::1]:10911", None, "10.9.0.1", [(E, "address-loopback")]),
    ("[::ffff:127.0.0.1]:10911", None, "10.9.0.1", [(E, "address-loopback")]),
    ("0.0.0.0:10911", Probe(("0.0.0.0",)), "10.9.0.1", [(E, "address-unspecified")]),
    ("[::]:10911", None, "10.9.0.1", [(E, "address-unspecified")]),
    ("169.254.7.7:10911", None, "10.9.0.1", [(E, "address-link-local")]),
    ("[fe80::1]:10911", None, "10.9.0.1", [(E, "address-link-local")]),
    ("224.0.0.1:10911", None, "10.9.0.1", [(E, "address-invalid")]),
    ("255.255.255.255:10911", None, "10.9.0.1", [(E, "address-invalid")]),
    ("no-port", Probe((), "unknown"), "10.9.0.1", [(E, "address-invalid")]),
    ("172.17.0.2:10911", Probe(("172.17.0.2",)), "10.9.0.1", [(E, "address-container")]),
    ("172.17.0.2:10911", None, "172.17.0.3", [(W, "address-container")]),
    ("172.18.0.2:10911", Probe(("172.18.0.2",)), "10.9.0.1", []),
    (
        "172.17.0.2:10911",
        Probe(("172.17.0.2",), "refused"),
        "10.9.0.1",
        [(E, "address-container"), (E, "broker-unreachable")],
    ),
    ("10.0.0.1:10911", None, "8.8.8.8", [(W, "address-private")]),
    ("9.9.9.9:10911", None, "8.8.8.8", []),
]


@pytest.mark.parametrize(("address", "probe", "ip", "expected"), ADDRESS)
def test_addresses(address: str, probe: Probe | None, ip: str, expected: list[tuple[str, str]]) -> None:
    probes = {} if probe is None else {address: probe}
    found = reported(addresses.check, server(A, {"b": {0: address}}, {}, ips=(ip,)), probes=probes)
    assert found == [(severity, rule, (A,), ("b", address)) for severity, rule in expected]


def test_a_container_is_suspected_where_no_broker_answers() -> None:
    address = "172.18.0.2:10911"
    facts = Facts(
        (server(A, {"b": {0: address}}, {}),), probed([address], {address: "no connection within 3 s"})
    )
    (finding,) = addresses.check(facts)
    assert "no connection within 3 s" in finding.what
    assert "172.18.0.0/16 is a network that Docker takes" in finding.advice


SLAVE_ONLY = {"broker-b": {1: "10.0.0.4:10911"}}
BROKERS: list[tuple[str, list[NameServerFacts], list[Reported]]] = [
    (
        "no master anywhere",
        [server(A, SLAVE_ONLY), server(B, SLAVE_ONLY)],
        [(E, "broker-without-master", BOTH, ("broker-b",))],
    ),
    (
        "a slave acts",
        [server(A, SLAVE_ONLY, acting=True)],
        [(W, "broker-without-master", (A,), ("broker-b",))],
    ),
    ("no master at one: a difference", [server(A, SLAVE_ONLY), server(B)], []),
    (
        "no address",
        [server(A, {"broker-b": {}}), server(B)],
        [(W, "broker-without-address", (A,), ("broker-b",))],
    ),
    (
        "two clusters",
        [server(A, clusters={"c1": ["broker-a"], "c2": ["broker-a", "broker-b"]})],
        [(E, "broker-in-two-clusters", (A,), ("broker-a",))],
    ),
    (
        "two names",
        [server(A, {"x": {0: "10.0.0.1:10911"}, "y": {1: "10.0.0.1:10911", 0: "10.0.0.2:10911"}})],
        [(E, "address-twice", (A,), ("10.0.0.1:10911", "x", "y"))],
    ),
    (
        "two ids",
        [server(A, {"x": {0: "10.0.0.1:10911", 1: "10.0.0.1:10911"}})],
        [(E, "address-twice", (A,), ("10.0.0.1:10911", "x"))],
    ),
]


@pytest.mark.parametrize(("acting", "harm"), [(True, "a slave acts for it"), (False, "but not written")])
def test_what_a_missing_master_means(acting: bool, harm: str) -> None:
    finding, _ = brokers.check(Facts((server(A, SLAVE_ONLY, acting=acting),)))
    assert harm in finding.what


@pytest.mark.parametrize(("facts", "expected"), [r[1:] for r in BROKERS], ids=[r[0] for r in BROKERS])
def test_brokers(facts: list[NameServerFacts], expected: list[Reported]) -> None:
    assert [row for row in reported(brokers.check, *facts) if row[1] != "leases-not-told"] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lease(), []),
        (lease(remaining_ms=60_000), []),
        (lease(remaining_ms=59_000), [(W, "lease-ending")]),
        (lease("held", 0), [(E, "lease-ending")]),
        (lease("overdue", 0), [(E, "lease-ending")]),
        (lease(version_ms=1_004_000), []),
        (lease(version_ms=1_006_000), [(W, "broker-clock-ahead")]),
    ],
)
def test_leases(found: BrokerLease, expected: list[tuple[str, str]]) -> None:
    rows = reported(brokers.check, server(A, **leases(found)))
    assert rows == [(severity, rule, (A,), ("broker-a", "10.0.0.1:10911")) for severity, rule in expected]


def test_a_hold_explains_the_leases_that_it_holds() -> None:
    facts = server(A, **leases(lease("held", 0), lease("overdue", 0), findings=(HOLD,)))
    (finding,) = brokers.check(Facts((facts,)))
    assert "routes leave it out already" in finding.what


def test_a_hold_explains_late_heartbeats() -> None:
    """After an outage of the store all brokers are late, and none of them is at fault."""
    late = lease(remaining_ms=40_000)
    assert list(brokers.check(Facts((server(A, **leases(late, findings=(HOLD,))),)))) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"http": HttpFacts("http://ns:8080", "no", is_remoting=True)},
        {"http": HttpFacts("http://ns:8080", "status 503", not_ready="no worker")},
        {"http": HttpFacts("http://ns:8080", "no answer", port=Port.MUTE)},
        {"store_away": ("a lookup failed",)},
    ],
)
def test_that_leases_are_not_told_follows_from_another_finding(facts: dict[str, Any]) -> None:
    assert reported(brokers.check, server(A, brokers={}, queues={}, **facts)) == []


def test_unlisted_leases_are_reported() -> None:
    away: dict[str, Any] = {"http": HttpFacts("http://b:8080", failure="refused")}
    unasked, failed = brokers.check(Facts((server(A), server(B, **away), server(C, **leases()))))
    assert {(f.severity, f.check) for f in (unasked, failed)} == {(I, "leases-not-told")}
    assert (unasked.name_servers, "give --http URL" in unasked.advice) == ((A,), True)
    assert (failed.name_servers, "give --http URL" in failed.advice) == ((B,), False)
    assert failed.what.endswith("(http://b:8080: refused)")


def topic(**by_broker: tuple[int, int, int]) -> dict[str, Any]:
    """One topic T beside a healthy one of each broker."""
    healthy = {"HA": {"broker-a": (8, 8, 6)}, "HB": {"broker-b": (8, 8, 6)}}
    return healthy | {"T": {name.replace("_", "-"): numbers for name, numbers in by_broker.items()}}


T_AT_A = ((A,), ("T",))
WIPED = {"TA": {"broker-a": (8, 8, 4)}, "TB": {"broker-a": (8, 8, 4)}, **LONELY}
TOPICS: list[tuple[str, list[NameServerFacts], list[Reported]]] = [
    ("read only", [server(queues=topic(broker_a=(8, 8, 4)))], [(W, "topic-not-writable", *T_AT_A)]),
    ("read only at one broker", [server(queues=topic(broker_a=(8, 8, 4), broker_b=(8, 8, 6)))], []),
    ("no write queues", [server(queues=topic(broker_a=(8, 0, 6)))], [(W, "topic-not-writable", *T_AT_A)]),
    ("write only", [server(queues=topic(broker_a=(8, 8, 2)))], [(W, "topic-not-readable", *T_AT_A)]),
    ("no read queues", [server(queues=topic(broker_a=(0, 0, 6)))],
     [(W, "topic-not-writable", *T_AT_A), (W, "topic-not-readable", *T_AT_A)]),
    ("fewer read queues", [server(queues=topic(broker_a=(4, 8, 6)))], [(E, "queues-never-read", *T_AT_A)]),
    ("more read queues", [server(queues=topic(broker_a=(8, 4, 6)))], []),
    ("uneven", [server(queues=topic(broker_a=(8, 8, 6), broker_b=(4, 4, 6)))], [(W, "queues-uneven", *T_AT_A)]),
    ("a broker that is gone", [server(queues=topic(gone=(8, 8, 6)))],
     [(W, "topic-not-writable", *T_AT_A), (E, "queues-without-broker", *T_AT_A)]),
    ("of its own brokers", [server(queues={"%RETRY%g": {"broker-a": (1, 1, 4)}, "broker-a": {"broker-a": (1, 1, 1)},
                                           "c1_REPLY_TOPIC": {"broker-a": (0, 0, 0)}, "c1": {"broker-a": (2, 16, 7)},
                                           "rmq_sys_x": {"broker-a": (2, 16, 6)}})], []),
    ("its only broker has no master: reported there",
     [server(brokers=BROKER_A | SLAVE_ONLY, queues=topic(broker_b=(8, 8, 4)))], []),
    ("wiped", [server(queues=WIPED)],
     [(W, "broker-wiped", (A,), ("broker-a",))]),
    ("wiped, and none is drained", [server(queues=WIPED, **drains())], [(W, "broker-wiped", (A,), ("broker-a",))]),
    ("not wiped but drained: reported there", [server(queues=WIPED, **drains(drain()))], []),
    ("its only topic, of a drained broker: reported there",
     [server(queues=topic(broker_a=(8, 8, 4)), **drains(drain()))], []),
    ("drained here, and wiped where drains are not known", [server(queues=WIPED, **drains(drain())),
                                                          server(B, queues=WIPED)],
     [(W, "broker-wiped", (B,), ("broker-a",))]),
    ("alike at two name servers",
     [server(A, queues=topic(broker_a=(4, 8, 6))), server(B, queues=topic(broker_a=(4, 8, 6)))],
     [(E, "queues-never-read", BOTH, ("T",))]),
    ("several alike", [server(queues={"TX": {"broker-a": (4, 8, 6)}, "TY": {"broker-a": (2, 3, 6)}})],
     [(E, "queues-never-read", (A,), ("TX", "TY"))]),
    ("auto creation", [server(queues=QUEUES | {"TBW102": {"broker-a": (8, 8, 7)}})],
     [(I, "topics-made-on-demand", (A,), ("TBW102",))]),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), [r[1:] for r in TOPICS], ids=[r[0] for r in TOPICS])
def test_topics(facts: list[NameServerFacts], expected: list[Reported]) -> None:
    assert reported(topics.check, *facts) == expected


@pytest.mark.parametrize(
    ("http", "may_be_drained"),
    [
        ({}, True),
        ({"http": HttpFacts("http://ns:8080", failure="refused")}, True),
        (leases(), True),
        (drains(), False),
    ],
    ids=["no HTTP side", "it failed", "an earlier release", "it knows"],
)
def test_a_broker_without_writable_topics_may_be_drained(http: dict[str, Any], may_be_drained: bool) -> None:
    (finding,) = topics.check(Facts((server(queues=WIPED, **http),)))
    assert finding.what.endswith(" or it is drained") is may_be_drained
    assert ("mqns drains --http" in finding.advice) is may_be_drained
    assert "mqns permissions add broker-a" in finding.advice


def test_brokers_that_create_topics_on_demand_are_named() -> None:
    """Also where topics are not listed."""
    of_b = {"TBW102": {"broker-b": (8, 8, 7)}}
    facts = Facts((server(A, queues=QUEUES | of_b, topics=None), server(B, queues=QUEUES)))
    (on_demand,) = topics.check(facts)
    assert on_demand.name_servers == (A,)
    assert on_demand.what.startswith("broker-b: ")


@pytest.mark.parametrize(
    ("order", "enabled", "expected"),
    [
        ("broker-a:8;broker-b:2", "true", []),
        ("broker-a:8;", "true", []),
        ("broker-a:9", "true", [(E, "order-queues-unknown", "TA")]),
        ("other:1", "true", [(E, "order-broker-unknown", "TA")]),
        ("broker-a", "true", [(E, "order-malformed", "TA")]),
        ("broker-a:x;broker-b:\u0663", "true", [(E, "order-malformed", "TA"), (E, "order-malformed", "TA")]),
        ("other:1", "false", [(W, "order-broker-unknown", "TA"), (W, "order-unused", ORDER)]),
    ],
)
def test_order_of_queues(order: str, enabled: str, expected: list[tuple[str, str, str]]) -> None:
    facts = server(kv={ORDER: {"TA": order}}, config={"orderMessageEnable": enabled})
    assert reported(topics.check, facts) == [
        (severity, rule, (A,), (subject,)) for severity, rule, subject in expected
    ]


def finding(rule: str, severity: Severity = Severity.ERROR, subjects: tuple[str, ...] = ("x",)) -> Finding:
    return Finding(severity, rule, "what", (A,), subjects, "advice")


def test_the_worst_come_first() -> None:
    info, warning, error, other = (
        finding("a", Severity.INFO),
        finding("b", Severity.WARNING),
        finding("z"),
        finding("c"),
    )
    assert in_order([info, warning, error, other]) == [other, error, warning, info]


def test_what_was_gone_at_the_second_look_was_no_difference() -> None:
    first = [finding("a", subjects=("x", "y")), finding("b")]
    second = [finding("a", subjects=("y", "z")), finding("b", subjects=("other",)), finding("c")]
    assert confirmed(first, second) == second[:1]


def test_few_of_many_are_named() -> None:
    assert named("abcdefg") == "a, b, c, d, e and 2 more"
    assert named("ab") == "a, b"
