"""What happens to running services, and which alerts have to fire on it.

All of it happens, but for what only the pipeline says (flapping brokers, budgets, checkpoints that disagree): that is
written to the store as the pipeline writes it."""

import itertools
import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from metrics.files import MADE, MEMORY
from mqpipeline.reports.catalogue import SLO
from mqpipeline.serving.publish import publish
from mqpipeline.serving.results import Results
from registry.clock import LATE_MS
from registry.drift import DriftReport, Unanswered, delete, report
from registry.drivers import run
from registry.plans import Origin
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command, encode
from testbed import redis_servers
from testbed.broker import Broker, Topic
from testbed.connection import V5_3_3, Connection
from testbed.eventually import eventually
from testbed.processes import send, stopped
from tests.alerts.recording import LATE
from tests.alerts.service import AWAITED_S, Peer, Service, repeated
from tests.mqpipeline.serving.example import AS_OF, RUN, row
from worker.jobs.route_checker import VERSIONS

TOPICS: Final = tuple(Topic(f"T{number}") for number in range(400))
MANY: Final = Broker(name="many", addr="127.0.2.1:10911", topics=TOPICS)
OUTAGE_S: Final = 1 + LATE_MS / 1000
"""Longer than leases may go without a worker's tick: the time is the fault."""
ELSEWHERE: Final = b"PROXY TCP4 192.0.2.7 10.9.9.9 41000 9876\r\n"
"""A balancer of this machine says that the client is on another one."""
REFUSED_AT_ONCE: Final = 20
PRINCIPAL: Final = '[principals.ci]\nroles = ["reader"]\n'
COMPARED: Final = ("127.0.2.2:9876", "127.0.2.3:9876")
HOUR_S: Final = 3_600
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
DIFFERING: Final = msgspec.structs.replace(RUN, proves=True, members_differing=1, pairs_differing=0)


class Fault(msgspec.Struct, frozen=True):
    """`cause` makes it happen to a running service and, when left, ends it."""

    service: str
    fires: frozenset[str]
    for_s: float
    cause: Callable[[Service], AbstractContextManager[None]]

    @property
    def name(self) -> str:
        return self.cause.__name__


FAULTS: list[Fault] = []


def fault(
    service: str, fires: str, *, for_s: float = 8
) -> Callable[[Callable[[Service], Iterator[None]]], Callable[[Service], AbstractContextManager[None]]]:
    """Add a fault to the list; `fires` are names of alerts."""

    def add(cause: Callable[[Service], Iterator[None]]) -> Callable[[Service], AbstractContextManager[None]]:
        context = contextmanager(cause)
        FAULTS.append(Fault(service, frozenset(fires.split()), for_s, context))
        return context

    return add


@fault("plain", "LookupNotFound")
def lookups_of_topics_that_do_not_exist(service: Service) -> Iterator[None]:
    peer, client = Peer(service), Peer(service)
    with repeated(0.05, lambda: peer.look_up("NoSuchTopic")), repeated(0.05, lambda: client.look_up("TA")):
        yield


@fault("plain", "IdentityConflict", for_s=10)
def one_address_has_many_names(service: Service) -> Iterator[None]:
    for number in range(5):
        service.announce(f"same-{number}", "127.0.1.99:10911")
    yield


@fault("plain", "AccessDenied")
def changes_by_callers_that_prove_nothing(service: Service) -> Iterator[None]:
    kv = {"namespace": "n", "key": "k", "value": "v"}
    frames = encode(Command(RequestCode.PUT_KV_CONFIG, 1, 0, V5_3_3, ext=kv)) * REFUSED_AT_ONCE
    connection = Connection(service.server.port, first=ELSEWHERE)

    def change() -> None:
        connection.send(frames)
        for _ in range(REFUSED_AT_ONCE):
            assert connection.receive().code == ResponseCode.NO_PERMISSION

    with repeated(0.1, change):
        yield


@fault("small", "AccessFileRefused")
def an_access_file_with_an_error(service: Service) -> Iterator[None]:
    service.access_file.write(PRINCIPAL.replace("roles", "role"))
    eventually(lambda: service.value("access_file_last_reload_successful") == 0)
    yield
    service.access_file.write(PRINCIPAL)
    eventually(lambda: service.value("access_file_last_reload_successful") == 1)


@fault("plain", "RegistrationRejected")
def registrations_that_were_damaged_on_their_way(service: Service) -> Iterator[None]:
    peer, broker = Peer(service), Broker()
    with repeated(0.1, lambda: peer.register(broker, bodyCrc32="1")):
        yield


@fault("plain", "ConsumerSilent BrokerFlapping BudgetSpent FoldMismatch", for_s=4)
def bad_reports_two_hours_ago(service: Service) -> Iterator[None]:
    redis, keys = service.store.client, service.keys
    budget = row(SLO.table, "cluster:c1", "30d", slo=0.999, budget_ms=0.001 * DAY_MS, remaining=-0.5)
    publish(redis, "default", DIFFERING, Results(AS_OF, {SLO.table.name: (budget,)}))
    redis.hset(keys.report("flap:values"), "slot:c1:b0:0", '{"flapping": true}')
    then = int(time.time() * 1000) - 2 * HOUR_MS
    redis.hset(keys.events_consumers, "pipeline:main", json.dumps({"id": "0-0", "seq": 0, "at_ms": then}))
    eventually(lambda: service.value("error_budget_remaining_ratio", cluster="c1") == -0.5)
    yield
    redis.delete(*redis.scan_iter(keys.report("*")))
    redis.hdel(keys.events_consumers, "pipeline:main")
    eventually(lambda: service.value("events_consumer_age_seconds", consumer="pipeline:main") is None)


@fault("plain", "BrokerExpired", for_s=8)
def a_broker_falls_silent(service: Service) -> Iterator[None]:
    with _silent(service, 1):
        yield


@fault("plain", "BrokerExpired MassExpiry", for_s=8)
def many_brokers_fall_silent(service: Service) -> Iterator[None]:
    with _silent(service, 4):
        yield


@fault("plain", "BrokerGone", for_s=8)
def a_broker_dies(service: Service) -> Iterator[None]:
    """A master that listens nowhere, whose connection ends."""
    labels = {"cluster": "c1", "broker": "dead", "broker_id": "0"}
    peer = Peer(service, source="127.0.3.20")
    assert peer.register(Broker(name="dead", addr="127.0.3.20:10911")) == 0
    eventually(lambda: service.value("broker_up", **labels) == 1)
    peer.close()
    eventually(lambda: service.value("broker_up", **labels) == 0)
    yield


@contextmanager
def _silent(service: Service, number: int) -> Iterator[None]:
    """Have leases end that are a second long."""
    before = _unregistered(service, "expired")
    for place in range(number):
        service.announce(f"silent-{place}", f"127.0.3.{place}:10911", heartbeatTimeoutMillis=1000)
    eventually(lambda: _unregistered(service, "expired") >= before + number)
    yield


def _unregistered(service: Service, cause: str) -> float:
    return service.value("unregistration_events_total", cause=cause) or 0


@fault("well", "NoWritableMaster", for_s=6)
def the_only_broker_of_a_topic_is_drained(service: Service) -> Iterator[None]:
    service.announce("only", "127.0.4.1:10911", topics=[{"topicName": "Only"}])
    path = "/v1/brokers/only/drain"
    service.http.put(path, json={"owner": "tests", "reason": "a fault"}).raise_for_status()
    eventually(lambda: service.value("drained_brokers", cluster="c1") == 1)
    eventually(lambda: service.value("topics_without_writable_master", cluster="c1") == 1, AWAITED_S)
    yield
    service.http.delete(path).raise_for_status()


@fault("well", "WrongRoute", for_s=6)
def tables_are_changed_and_workers_do_not_learn_it(service: Service) -> Iterator[None]:
    """By another program, on both of their sides, so that the walk over them finds no damage."""
    redis, keys, peers = service.store.client, service.keys, [Peer(service) for _ in range(8)]
    before: dict[tuple[str, str], str] = {}
    for topic in map(str, redis.smembers(keys.topics)):
        for peer, version in itertools.product(peers, VERSIONS):  # so that each worker caches its answers
            peer.look_up(topic, version)
        for broker, text in redis.hgetall(keys.route(topic)).items():
            stored = str(text)
            before |= {(keys.route(topic), str(broker)): stored, (keys.topics_of(str(broker)), topic): stored}
    for (key, field), stored in before.items():
        epoch, queues, rest = stored.split(",", 2)
        redis.hset(key, field, f"{epoch},{int(queues) + 1},{rest}")
    mismatches = {"result": "mismatch"}
    eventually(lambda: (service.value("consistency_checks_total", **mismatches) or 0) > 0, AWAITED_S)
    yield
    for (key, field), stored in before.items():
        redis.hset(key, field, stored)


@fault("store", "LeasesHeld", for_s=5)
def the_store_was_away(service: Service) -> Iterator[None]:
    with stopped(service.store.process.pid):
        time.sleep(OUTAGE_S)
    eventually(lambda: service.value("expiry_held") == 1 and service.value("redis_up") == 1)
    yield


def leave(service: Service, broker: Peer) -> None:
    """Close the connection of a broker, and wait until that counts: or it would in the next fault."""
    before = _unregistered(service, "closed")
    broker.close()
    eventually(lambda: _unregistered(service, "closed") > before)


@fault("store", "LookupSlow SlowScript", for_s=12)
def the_store_is_slow(service: Service) -> Iterator[None]:
    clients, other, broker = [Peer(service) for _ in range(3)], Peer(service), Peer(service)
    topics = itertools.cycle(topic.name for topic in TOPICS)
    with (
        ExitStack() as stack,
        repeated(0.01, lambda: redis_servers.command(service.store, "DEBUG", "SLEEP", "0.04")),
        repeated(0.03, lambda: other.look_up(next(topics))),
        repeated(0.05, lambda: broker.register(MANY)),
    ):
        for client in clients:
            stack.enter_context(repeated(0.03, partial(client.look_up, "T0")))
        yield
    leave(service, broker)


@fault("store", "Down NotReady FollowerLost", for_s=10)
def the_right_to_read_the_stream_is_taken(service: Service) -> Iterator[None]:
    redis_servers.command(service.store, "ACL", "SETUSER", "default", "-xread")
    eventually(lambda: service.value("follower_connected") == 0)
    yield
    redis_servers.command(service.store, "ACL", "SETUSER", "default", "+xread")


@fault(
    "store",
    "Down NotReady RedisDown FollowerLost LookupBudgetFast LookupBudgetSlow LookupBudgetLeak "
    "RegistrationRejected",
    for_s=16,
)
def the_store_stands_still(service: Service) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(stopped(service.store.process.pid))
        for number in range(20):
            peer = Peer(service)
            stack.enter_context(repeated(0.1, partial(peer.look_up, f"Other{number}")))
        for number in range(10):
            peer, broker = Peer(service), Broker(name=f"new-{number}", addr=f"127.0.5.{number}:10911")
            stack.enter_context(repeated(0.1, partial(peer.register, broker)))
        yield


@fault("plain", "FollowerLost", for_s=8)
def the_folder_of_metrics_is_lost(service: Service) -> Iterator[None]:
    """And something is in its place, so that no process can make it again."""
    (folder,) = Path(MEMORY).glob(f"{MADE}{service.server.pid}-*")
    shutil.rmtree(folder)
    folder.touch()
    eventually(lambda: service.value("workers", role="http") is None)
    yield
    folder.unlink()
    eventually(lambda: service.value("workers", role="http"))


def _many_brokers(number: int) -> tuple[str, str]:
    return f"big-{number}", f"127.0.6.{number % 200}:{10911 + number}"


@fault("small", "TaskStalled", for_s=LATE + 6)
def jobs_and_schedulers_stand_still(service: Service) -> Iterator[None]:
    family = service.family
    with stopped(*family.schedulers, *family.job_workers):
        yield
    service.await_jobs()


@fault("small", "TaskStalled ExpiryLag", for_s=14)
def the_right_to_write_events_is_taken(service: Service) -> Iterator[None]:
    before = _unregistered(service, "expired")
    service.announce("silent", "127.0.3.1:10911", heartbeatTimeoutMillis=1000)
    redis_servers.command(service.store, "ACL", "SETUSER", "default", "-xadd")
    eventually(lambda: (service.value("expiry_lag_seconds") or 0) > 15)
    yield
    redis_servers.command(service.store, "ACL", "SETUSER", "default", "+xadd")
    service.await_jobs()
    eventually(lambda: _unregistered(service, "expired") > before)


@fault("plain", "Drift DriftUnknown", for_s=4)
def name_servers_that_differ_and_one_that_does_not_answer(service: Service) -> Iterator[None]:
    for name, found in (
        ("differs", DriftReport(COMPARED, HOUR_S, {"topic-missing": 1})),
        ("silent", DriftReport(COMPARED, HOUR_S, {}, (Unanswered(COMPARED[0], "no answer"),))),
    ):
        run(report(service.keys, name, found, Origin("test", "cli:test")), service.store.client)
    eventually(lambda: service.value("drift_unreachable", comparison="silent") == 1)
    yield
    for name in ("differs", "silent"):
        run(delete(service.keys, name, Origin("test", "cli:test")), service.store.client)
    eventually(lambda: service.value("drift_age_seconds", comparison="silent") is None)


@fault("small", "EventsCut", for_s=3)
def more_events_than_there_is_memory_for(service: Service) -> Iterator[None]:
    numbers, before = itertools.count(), service.value("events_trimmed_total", reason="cap") or 0
    with repeated(0.05, lambda: service.announce(*_many_brokers(next(numbers)))):
        eventually(lambda: (service.value("events_trimmed_total", reason="cap") or 0) > before)
        yield
    service.await_jobs()


@fault("plain", "Down", for_s=6)
def the_server_ends(service: Service) -> Iterator[None]:
    send(signal.SIGTERM, service.server.pid)
    eventually(lambda: not service.recorder.scrapes[-1].values)
    yield


@fault("late", "CertExpires", for_s=3)
def a_certificate_of_a_day(service: Service) -> Iterator[None]:
    yield


@fault("late", "CertExpires VisibilitySlow", for_s=12)
def workers_read_the_stream_late(service: Service) -> Iterator[None]:
    numbers = itertools.count()
    with repeated(0.05, lambda: service.announce(*_many_brokers(next(numbers)))):
        yield
