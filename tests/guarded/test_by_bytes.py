"""Who gets the reply that a worker has kept for a request, and in whose name: what random histories have found."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest

from access.live import Stored
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from testbed.broker import Broker, Topic
from tests.guarded.principals_file import PrincipalsFile
from tests.guarded.signing import sign
from tests.guarded.worker_side import Line, WorkerSide, running
from tests.guarded.world import Certificate, Connection, Principal, Secret, WireRequest
from tests.worker.scene import asynchronous

SECRET: Final = "a secret of 24 characters"
NEAR, FAR = Connection("10.1.2.3", 1), Connection("8.8.8.8", 2)
FAR_FUTURE: Final = 4_000_000_000.0
LOOKUP: Final = WireRequest(105, {"topic": "TA"})
BROKER: Final = Broker(addr="127.0.1.1:10911")
REGISTRATION: Final = WireRequest(103, BROKER.ext(BROKER.body()), BROKER.body())
HEARTBEAT: Final = WireRequest(904, BROKER.identity())
REFUSED, DONE = 16, 0


def principal(*roles: str, key: str = "K", **limits: tuple[str, ...]) -> Principal:
    return Principal(roles, limits, keys={key: (Secret(SECRET),)})


def signed(request: WireRequest, *, key: str = "K", secret: str = SECRET) -> WireRequest:
    fields = {**request.fields, "AccessKey": key}
    return request._replace(fields={**fields, "Signature": sign(fields, request.body, secret)})


def over_tls(name: str, host: str = FAR.host) -> Connection:
    return Connection(host, 3, tls=True, certificate=Certificate(dns=(name,), ends=FAR_FUTURE))


class Start:
    """Runs a worker with these principals and rules; other rules are open."""

    def __init__(self, store: EmbeddedStore, folder: Path) -> None:
        self._url = store.url
        self._file = PrincipalsFile(folder)

    def __call__(
        self, principals: Mapping[str, Principal], **options: str | bool
    ) -> AbstractAsyncContextManager[WorkerSide]:
        self._file.write(principals)
        rules = {f"access_{of_class}": "open" for of_class in ("read", "broker", "admin", "config")}
        given = Options(redis_url=self._url, access_file=str(self._file.path), **(rules | options))  # type: ignore[arg-type]
        return running(given, "w1")


@pytest.fixture
def start(store: EmbeddedStore, tmp_path: Path) -> Start:
    return Start(store, tmp_path)


async def codes(worker: WorkerSide, line: Line, request: WireRequest, times: int = 1) -> list[int]:
    """Send a request so many times, one after the other, and return the codes of the replies."""
    seen = [await worker.ask(line, request) for _ in range(times)]
    return [reply.code for one in seen for reply in one.replies if reply is not None]


@asynchronous
async def test_a_signature_that_counts_with_an_address_does_not_count_from_elsewhere(start: Start) -> None:
    async with start({"client": principal("reader")}, access_read="net+signed") as worker:
        near, far = worker.connect(NEAR), worker.connect(FAR)
        await codes(worker, near, REGISTRATION)
        assert await codes(worker, near, signed(LOOKUP), 5) == [DONE] * 5
        assert await codes(worker, far, signed(LOOKUP), 2) == [REFUSED] * 2
        forged = signed(LOOKUP)._replace(fields={**signed(LOOKUP).fields, "topic": "TB"})
        assert await codes(worker, near, forged, 2) == [REFUSED] * 2


@asynchronous
async def test_a_signature_without_a_role_proves_nothing_of_the_bytes_that_an_address_admits(
    start: Start,
) -> None:
    async with start({"client": principal("reader")}, access_broker="net signed") as worker:
        near, far = worker.connect(NEAR), worker.connect(FAR)
        await codes(worker, near, REGISTRATION)
        assert await codes(worker, near, signed(HEARTBEAT), 4) == [DONE] * 4
        assert await codes(worker, far, signed(HEARTBEAT), 2) == [REFUSED] * 2


@asynchronous
async def test_a_signature_that_is_enough_counts_from_everywhere_by_its_bytes(start: Start) -> None:
    """What the others must not lose."""
    async with start({"client": principal("reader")}, access_read="net signed") as worker:
        near, far = worker.connect(NEAR), worker.connect(FAR)
        await codes(worker, near, REGISTRATION)
        await codes(worker, near, signed(LOOKUP), 2)
        assert await far.is_open()  # what comes first over a connection is decoded
        seen = [await worker.ask(line, signed(LOOKUP)) for line in (near, far)]
        assert [(one.by_bytes, one.denied) for one in seen] == [(1, 0)] * 2


@asynchronous
async def test_what_a_signature_proves_is_not_answered_to_the_same_request_without_it(start: Start) -> None:
    """The cluster info, which has no topic, and was asked for without a signature from near."""
    unsigned = WireRequest(106)
    async with start({"client": principal("reader")}, access_read="net signed") as worker:
        near, far = worker.connect(NEAR), worker.connect(FAR)
        assert await codes(worker, far, signed(unsigned), 3) == [DONE] * 3
        assert await codes(worker, near, unsigned, 3) == [DONE] * 3
        assert await codes(worker, far, unsigned, 2) == [REFUSED] * 2
        for line, request in ((far, signed(unsigned)), (near, unsigned)):
            assert [(await worker.ask(line, request)).by_bytes for _ in range(3)][-1] == 1


@asynchronous
async def test_a_heartbeat_is_not_kept_of_a_key_that_is_revoked_while_the_store_is_asked(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start({"brokers": principal("broker")}, access_broker="signed") as worker:
        line = worker.connect(FAR)
        await codes(worker, line, signed(REGISTRATION))
        guard = worker.parts.guard
        line.send(signed(HEARTBEAT))
        while not worker.parts.admission.waiting:
            await asyncio.sleep(0)
        guard.take_stored(Stored(revoked=frozenset({"acl:K"})))
        reply = await line.receive()
        assert reply is not None
        assert reply.code == DONE
        assert await codes(worker, line, signed(HEARTBEAT), 2) == [REFUSED] * 2


@asynchronous
async def test_topics_are_those_of_the_principal_that_admits_a_registration(start: Start) -> None:
    """A reader's signature lifts no limit of the certificate, and a broker's without limits counts by itself."""
    team = Principal(("broker",), {"topics": ("o-*",)}, certificates=("dns:team",))
    keys = {"client": principal("reader"), "brokers": principal("broker", key="B")}
    async with start({"team": team, **keys}, access_broker="signed mtls") as worker:
        line = worker.connect(over_tls("team"))
        of_both = BROKER.but(topics=(Topic("o-1"), Topic("x")))
        body = of_both.body()
        registration = WireRequest(103, of_both.ext(body), body)
        assert await codes(worker, line, registration) == [REFUSED]
        assert await codes(worker, line, signed(registration)) == [REFUSED]
        assert await codes(worker, line, signed(registration, key="B")) == [DONE]


@asynchronous
async def test_observed_callers_keep_their_names_and_are_counted_each_time(start: Start) -> None:
    keys = {"client": principal("reader"), "team": principal("broker", key="T", topics=("o-*",))}
    observe = {"access_mode": "observe", "access_broker": "signed", "access_read": "tls+signed open"}
    async with start(keys, **observe) as worker:
        line = worker.connect(FAR)
        for key, actor in (("K", "acl:client"), ("T", "acl:team")):
            seen = await worker.ask(line, signed(REGISTRATION, key=key))
            assert [(seen.actor, seen.denied, one.code) for one in seen.replies if one] == [(actor, 1, DONE)]
            repeated = [await worker.ask(line, signed(REGISTRATION, key=key)) for _ in range(4)]
            assert [one.denied for one in repeated] == [1] * 4
        wrong = signed(LOOKUP, secret="a wrong secret")
        assert [(await worker.ask(line, wrong)).denied for _ in range(4)] == [1] * 4


@asynchronous
async def test_a_bad_signature_reads_as_an_unknown_key_over_a_known_connection(start: Start) -> None:
    keys = {"client": principal("reader"), "shown": Principal(("reader",), certificates=("dns:a",))}
    async with start(keys, access_broker="signed") as worker:
        line = worker.connect(over_tls("a"))
        remarks = set()
        for request in (signed(HEARTBEAT, secret="a wrong secret"), signed(HEARTBEAT, key="unknown")):
            (reply,) = (await worker.ask(line, request)).replies
            assert reply is not None
            remarks.add(reply.remark)
        assert remarks == {"access denied: broker needs signed, with a role for it; caller mtls:shown"}


@asynchronous
async def test_a_bad_certificate_is_made_good_by_a_signature_with_the_role_alone(start: Start) -> None:
    two = {name: Principal(("broker",), certificates=(f"dns:{name}*",)) for name in ("a", "ab")}
    keys = {"client": principal("reader"), "brokers": principal("broker", key="B")}
    async with start({**two, **keys}, access_broker="open signed") as worker:
        line = worker.connect(over_tls("abc"))
        assert await codes(worker, line, REGISTRATION) == [REFUSED]
        assert await codes(worker, line, signed(REGISTRATION)) == [REFUSED]
        assert await codes(worker, line, signed(REGISTRATION, key="B")) == [DONE]


@asynchronous
async def test_a_signature_without_a_role_lends_no_certificate_to_other_callers(start: Start) -> None:
    """The rule admits all, and the member is the certificate's principal's."""
    team = Principal(("broker",), certificates=("dns:team",))
    keys = {"client": principal("reader"), "team": team}
    async with start(keys, access_broker="open signed", ownership_guard=True) as worker:
        owner, other = worker.connect(over_tls("team")), worker.connect(FAR)
        assert await codes(worker, owner, REGISTRATION) == [DONE]
        assert await codes(worker, owner, signed(HEARTBEAT), 4) == [DONE] * 4
        assert await codes(worker, other, signed(HEARTBEAT), 3) == [REFUSED] * 3


@asynchronous
async def test_a_bad_certificate_is_made_good_by_no_signature_without_a_role(start: Start) -> None:
    """By bytes, of which several come at once: each frame over TLS that comes alone is decoded."""
    two = {name: Principal(("broker",), certificates=(f"dns:{name}*",)) for name in ("a", "ab")}
    async with start({**two, "client": principal("reader")}, access_broker="open signed") as worker:
        anyone, barred = worker.connect(FAR), worker.connect(over_tls("abc"))
        assert await codes(worker, anyone, REGISTRATION) == [DONE]
        assert await codes(worker, anyone, signed(HEARTBEAT), 4) == [DONE] * 4
        replies = (await worker.ask(barred, signed(HEARTBEAT), 3)).replies
        assert [reply.code for reply in replies if reply] == [REFUSED] * 3
