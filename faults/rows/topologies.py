"""Redis as it is run for use: under Sentinels, and as a Cluster."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from faults.fleet import Fleet
from faults.looks import Look
from faults.places import OPTIONS, Place, Redis
from faults.row import Promise, Row, Topics
from registry.store.connect import DEFAULT_NAMESPACE
from registry.store.slot_master import slot_of
from testbed.redis_servers import HOST, Server, command
from testbed.rocketmq.servers import serve
from testbed.rocketmq.stage import Stage
from testbed.topologies import DOWN_AFTER_MS, NODE_TIMEOUT_MS, SERVICE, Cluster, Watched, cluster, watched

MOVES_S = 5.0
"""How long the keys of the namespace are on their way from one master to the other."""


class UnderSentinels(Place):
    """A service whose master is watched by three Sentinels and has two replicas."""

    redis: Watched


def under_sentinels(stage: Stage) -> UnderSentinels:
    with ExitStack() as stack:
        redis = stack.enter_context(watched(stage.folder / "redis"))
        server = serve(stage, "ours", OPTIONS | {"redisUrl": redis.url})
        variables = {"SENTINEL_URL": _url(redis.sentinels[0]), "SERVICE": SERVICE}
        place = UnderSentinels(stage, server, variables=variables, rest=stack.pop_all())
    place.redis = redis
    return place


@contextmanager
def master_killed(place: UnderSentinels, fleet: Fleet) -> Iterator[None]:
    """Kill the master for good: a replica has to take its place."""
    place.redis.await_replicas()
    _kill(place.redis.master())
    yield


class OnCluster(Place):
    """A service on three masters with a replica each; its job queue is on a Redis of its own."""

    redis: Cluster


def on_cluster(stage: Stage) -> OnCluster:
    queue = Redis(stage)
    queue.await_answer()
    with ExitStack() as stack:
        redis = stack.enter_context(cluster(stage.folder / "cluster"))
        server = serve(stage, "ours", OPTIONS | {"redisUrl": redis.url, "rqRedisUrl": queue.url})
        node = redis.master_of(slot_of(DEFAULT_NAMESPACE))
        others = (master for master in redis.masters() if master is not node)
        variables = {"NODE_URL": _url(node), "OTHER_NODE_URL": _url(next(others))}
        place = OnCluster(stage, server, variables=variables, rest=stack.pop_all())
    place.redis = redis
    return place


@contextmanager
def node_killed(place: OnCluster, fleet: Fleet) -> Iterator[None]:
    """Kill the master that has the namespace's slot, for good."""
    place.redis.await_replicas()
    _kill(place.redis.master_of(slot_of(DEFAULT_NAMESPACE)))
    yield


@contextmanager
def slot_moved(place: OnCluster, fleet: Fleet) -> Iterator[None]:
    """Move the namespace's slot to another master, key by key."""
    slot = slot_of(DEFAULT_NAMESPACE)
    source = place.redis.master_of(slot)
    keys = int(command(source, "CLUSTER", "COUNTKEYSINSLOT", slot))
    target = next(one for one in place.redis.masters() if one is not source)
    place.redis.migrate(slot, target, lambda: time.sleep(MOVES_S / keys))
    yield


def _kill(server: Server) -> None:
    server.process.signal(signal.SIGKILL)


def _url(server: Server) -> str:
    return f"redis://{HOST}:{server.port}"


def _failing_over(seconds: float) -> Promise:
    return Promise(registrations_fail=True, lookups_fail=Topics.CHANGING, recovers_s=seconds)


ROWS = (
    Row(
        name="sentinel-failover",
        title=f"kill -9 of the master under Sentinels (down-after {DOWN_AFTER_MS} ms)",
        place=under_sentinels,
        fault=master_killed,
        promise=_failing_over(10.0),
        look=Look(shows=["s_down"]),
    ),
    Row(
        name="cluster-node",
        title=f"kill -9 of the namespace's master in a Cluster (node timeout {NODE_TIMEOUT_MS} ms)",
        place=on_cluster,
        fault=node_killed,
        promise=_failing_over(10.0),
        look=Look(shows=["master,fail"]),
    ),
    Row(
        name="cluster-slot",
        title=f"the namespace's slot moves to another master of a Cluster within {MOVES_S:.0f} s",
        place=on_cluster,
        fault=slot_moved,
        promise=_failing_over(3.0),
        look=Look(shows=["->-"]),
    ),
)
