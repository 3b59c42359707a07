"""What the guard of a worker says of requests."""

from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from access.certificates import CertificateNames
from access.classes import class_of
from access.live import Stored
from access.standing import UNKNOWN
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from tests.access.files import SECRET, access_file
from worker.counters import Counters
from worker.guard import Guard, Verdict
from worker.peer import Via

HEARTBEAT = RequestCode.BROKER_HEARTBEAT
PRINCIPALS = """
[principals.p]
roles = ["broker"]
keys = [{ accessKey = "K", secrets = [{ file = "a.key" }] }]
[principals.o]
roles = ["operator"]
keys = [{ accessKey = "O", secrets = [{ file = "a.key" }] }]
[principals.q]
roles = ["broker"]
limits = { topics = ["o-*"] }
certificates = ["dns:b.local"]
"""
TLS = SimpleNamespace(certificate=CertificateNames(inf, dns=("b.local",)))


def a_guard(folder: Path, of_brokers: str) -> Guard:
    path = access_file(folder, PRINCIPALS)
    options = Options(access_file=str(path), access_broker=of_brokers, access_read="net+signed")
    guard = Guard(options, Counters(lambda: 0))
    guard.take_stored(Stored())
    return guard


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return a_guard(tmp_path, "signed net+signed")


def verdict_of(guard: Guard, code: int = HEARTBEAT, tls: object = None, key: str = "K") -> Verdict:
    """That of a signed request."""
    peer: Any = SimpleNamespace(
        id="1",
        address="10.0.0.1:1",
        host="10.0.0.1",
        via=Via.DIRECT,
        tls=tls,
        rights=0,
        standing=UNKNOWN,
        closed=False,
    )
    fields = AclCredentials(key, SECRET)("", Request(code, {"clusterName": "c", "brokerName": "b"}, b"")).ext
    needs = class_of(code)
    verdicts: list[Verdict] = []
    guard.judge(Command(code, 1, 0, 0, ext=dict(fields or {})), peer, needs, verdicts.append)
    return verdicts[0]


def test_what_was_judged_by_principals_of_before_is_not_cached(guard: Guard) -> None:
    """The store is asked between the two, and its reply may come behind a revocation."""
    verdict = verdict_of(guard)
    assert verdict.refusal is None
    assert guard.holds(verdict)
    guard.take_stored(Stored(revoked=frozenset({"acl:K"})))
    assert not guard.holds(verdict)
    assert verdict_of(guard).refusal is not None


def test_a_signature_is_proof_by_its_bytes_only_where_it_admits_alone(guard: Guard) -> None:
    assert verdict_of(guard).by_bytes
    lookup = verdict_of(guard, code=RequestCode.GET_ROUTEINFO_BY_TOPIC)
    assert (lookup.refusal, lookup.by_bytes) == (None, False)
    assert not lookup.is_for_bytes


@pytest.mark.parametrize(
    ("key", "tls", "operates"), [("O", TLS, True), ("O", None, False), ("K", TLS, False)]
)
def test_owners_do_not_bind_an_operator_that_signs(
    guard: Guard, key: str, tls: object, operates: bool
) -> None:
    verdict = verdict_of(guard, RequestCode.REGISTER_TOPIC_IN_NAMESRV, tls, key)
    assert (verdict.refusal is None, verdict.operates) == (operates or key == "K", operates)


@pytest.mark.parametrize(
    ("rule", "limited"), [("mtls", True), ("signed", False), ("signed mtls", False), ("signed+mtls", True)]
)
def test_topics_are_those_of_the_proof_that_admits(tmp_path: Path, rule: str, limited: bool) -> None:
    """A signature of any other principal must not lift the limits of the certificate's."""
    verdict = verdict_of(a_guard(tmp_path, rule), tls=TLS)
    assert verdict.refusal is None
    ways = () if verdict.topics is None else verdict.topics.ways
    assert [[topics.texts for topics in way] for way in ways] == [[("o-*",)]] * limited
