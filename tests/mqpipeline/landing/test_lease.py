"""Of two processes that land the same streams the second one is refused by name, or waits for the first one's end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot

from mqnamesrv.store import EmbeddedStore
from mqpipeline.lake.log import OtherWriter, this_process
from mqpipeline.landing import lease
from mqpipeline.landing.lease import CLOSE_S, Leases, lease_key
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.options import options_of
from registry.store.url import with_login
from testbed.eventually import eventually
from testbed.topologies import cluster, watched

CONSUMER = "pipeline:main"
KEY = lease_key("default", CONSUMER)
TIMEOUT_S = 10
"""Of the store's client."""
Make = Callable[..., Leases]


@pytest.fixture
def make(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Leases of a second, renewed ten times in it."""
    for name, value in (("LEASE_MS", 1000), ("RENEW_S", 0.1), ("LOOK_AGAIN_S", 0.05)):
        monkeypatch.setattr(lease, name, value)
    opened: list[Leases] = []

    def leases(url: str = store.url) -> Leases:
        opened.append(Leases(Store(options_of({"url": url, "pattern": "*"})), CONSUMER))
        return opened[-1]

    yield leases
    for each in opened:
        each.close()


def test_a_second_one_is_refused_with_the_first_ones_name(make: Make, redis: Redis) -> None:
    make().require(["default"])
    with pytest.raises(
        OtherWriter, match=f"^{this_process()} lands namespace default since 20.*, as {CONSUMER}. End it"
    ):
        make().require(["default"])
    assert 0 < redis.pttl(KEY) <= 1000


def test_other_namespaces_and_names_do_not_meet(make: Make, store: EmbeddedStore) -> None:
    make().require(["default"])
    make().require(["other"])
    third = Leases(Store(options_of({"url": store.url, "pattern": "*"})), "pipeline:another")
    third.require(["default"])
    third.close()


def test_it_lasts_as_long_as_its_process_lands(make: Make, redis: Redis) -> None:
    first = make()
    first.require(["default"])
    ends_at = redis.pexpiretime(KEY)
    eventually(lambda: redis.pexpiretime(KEY) > ends_at + 1000)  # it was renewed after its first end, too
    with pytest.raises(OtherWriter):
        make().require(["default"])
    first.require(["default"])


def test_it_is_given_back(make: Make, redis: Redis) -> None:
    first = make()
    first.require(["default", "other"])
    first.close()
    assert redis.exists(KEY, lease_key("other", CONSUMER)) == 0
    make().require(["default"])


def test_the_lease_of_a_dead_process_is_waited_for(
    make: Make, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(KEY, b'{"by":"process 12 of pod-a","since_ms":1795255839125,"id":"1"}', px=600)
    make().require(["default"])
    [line] = caplog.messages
    assert line == (
        "process 12 of pod-a lands namespace default since 2026-11-21T10:10:39.125Z; "
        "waiting for it to end, or to be renewed"
    )
    assert "pod-a" not in str(redis.get(KEY))


def test_the_lease_of_a_dead_process_ends_though_the_clock_of_redis_went_back(
    make: Make, redis: Redis
) -> None:
    """By an hour: Redis keeps the time at which a key ends."""
    redis.set(KEY, b'{"by":"process 12 of pod-a","since_ms":1795255839125,"id":"1"}', px=3_600_000)
    make().require(["default"])
    assert "pod-a" not in str(redis.get(KEY))


def test_the_lease_of_a_living_process_is_kept_though_the_clock_of_redis_went_back(
    make: Make, redis: Redis
) -> None:
    make().require(["default"])
    redis.pexpire(KEY, 3_600_000)
    with pytest.raises(OtherWriter, match=f"^{this_process()} lands"):
        make().require(["default"])


def test_one_that_lost_its_lease_as_the_clock_of_redis_went_forward_takes_it_again(
    make: Make, redis: Redis
) -> None:
    first = make()
    first.require(["default"])
    redis.delete(KEY)
    first.require(["default"])
    with pytest.raises(OtherWriter):
        make().require(["default"])


def test_a_second_one_is_refused_after_a_failover_of_sentinel(make: Make, tmp_path: Path) -> None:
    with watched(tmp_path) as servers:
        first, second = make(servers.url), make(servers.url)
        first.require(["default"])
        servers.fail_over()
        first.require(["default"])
        with pytest.raises(OtherWriter):
            second.require(["default"])
        first.close()
        second.require(["default"])


def test_a_second_one_is_refused_while_a_cluster_moves_the_slot(make: Make, tmp_path: Path) -> None:
    with cluster(tmp_path) as servers:
        first, second = make(servers.url), make(servers.url)
        first.require(["default", "other"])
        slot = key_slot(KEY.encode())
        source = servers.master_of(slot)
        servers.migrate(slot, next(member for member in servers.masters() if member is not source))
        with pytest.raises(OtherWriter):
            second.require(["default"])
        first.require(["default", "other"])
        first.close()
        second.require(["default", "other"])


def test_what_is_no_lease_is_refused_with_its_key(make: Make, redis: Redis) -> None:
    """It never ends by itself."""
    redis.set(KEY, "mine")
    with pytest.raises(OtherWriter, match="another process lands namespace default"):
        make().require(["default"])
    assert redis.get(KEY) == "mine"


def test_one_that_stood_still_is_refused_when_it_goes_on(make: Make, redis: Redis) -> None:
    first, second = make(), make()
    first.require(["default"])
    redis.delete(KEY)  # as a lease that has ended
    second.require(["default"])
    with pytest.raises(OtherWriter):
        first.require(["default"])
    first.close()
    assert redis.exists(KEY), "the first one gives back what is not its own"


def test_the_store_may_be_away_for_a_while(make: Make, store: EmbeddedStore, redis: Redis) -> None:
    first = make()
    first.require(["default"])
    redis.client_pause(500, all=True)
    first.require(["default"])
    eventually(lambda: redis.pttl(KEY) > 800)


def test_a_user_without_the_rights_lands_without_a_lease(
    make: Make, store: EmbeddedStore, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client: Any = redis
    client.execute_command("ACL", "SETUSER", "old", "on", ">secret", "~*", "-@all", "+hget", "+hset")
    leases = make(with_login(store.url, "old", "secret"))
    leases.require(["default", "other"])
    leases.require(["default", "other"])
    [line] = caplog.messages
    assert line.startswith("no lease names this process as the one that lands namespace default: ")
    client.execute_command("ACL", "DELUSER", "old")


def test_its_thread_ends_with_it(make: Make) -> None:
    first = make()
    first.require(["default"])
    assert [thread.name for thread in threading.enumerate()].count("leases") == 1
    first.close()
    assert "leases" not in [thread.name for thread in threading.enumerate()]


def test_a_store_that_stands_still_does_not_hold_up_the_end(make: Make, store: EmbeddedStore) -> None:
    leases = make()
    leases.require([f"n{number}" for number in range(8)])
    os.kill(store.child.pid, signal.SIGSTOP)
    try:
        time.sleep(0.3)  # a renewal is under way
        began = time.monotonic()
        leases.close()
        assert time.monotonic() - began < CLOSE_S + TIMEOUT_S + 2
    finally:
        os.kill(store.child.pid, signal.SIGCONT)


def test_a_reply_that_was_lost_is_no_other_process(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make()
    call = first._store.call
    lost: list[Any] = []

    def loses_the_first_reply(*words: Any) -> Any:
        reply = call(*words)
        if words[0] == "SET" and not lost:
            lost.append(reply)
            return None
        return reply

    monkeypatch.setattr(first._store, "call", loses_the_first_reply)
    began = time.monotonic()
    first.require(["default"])
    assert lost == [True]
    assert time.monotonic() - began < 0.9
