"""A name server of containers that have no rights: it serves, writes nowhere but /tmp, and ends at a signal."""

import json
import time
import urllib.request
from contextlib import suppress

import pytest
from rq import Worker

from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import A
from testbed.connection import Closed, Connection
from testbed.eventually import eventually
from testbed.redis_servers import free_ports
from tests.container.conftest import COMMANDS, SHARED, Containers
from tests.container.podman import NAMESRV, once, running
from worker.jobs.timetable import JOBS

OUGHT_TO_HOLD = ("/", "/data", "/etc", "/home", "/opt/redis-namesrv", "/root", "/run", "/usr/bin", "/var/tmp")
LEASE_MS = 1000
RECORDED_WITHIN_S = 30.0
SLOW_S = 60.0


def topics(port: int, *more: str) -> str:
    """What the image's own command line says of a name server."""
    asked = once(NAMESRV, "mqns", "--namesrvAddr", f"127.0.0.1:{port}", "topics", *more)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    return asked.stdout


def test_a_broker_comes_and_goes(containers: Containers) -> None:
    over = Connection(containers.port)
    question = (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"})
    assert over.ask(*question).code == ResponseCode.TOPIC_NOT_EXIST
    assert A.register(over).code == ResponseCode.SUCCESS
    assert A.addr.encode() in over.ask(*question).body
    with urllib.request.urlopen(f"http://127.0.0.1:{containers.http_port}/v1/routes/TA", timeout=5) as answer:
        assert A.addr in json.dumps(json.load(answer))
    assert "TA" in topics(containers.port)
    assert A.unregister(over).code == ResponseCode.SUCCESS
    assert over.ask(*question).code == ResponseCode.TOPIC_NOT_EXIST


def test_the_programs_of_the_chart_are_there(containers: Containers) -> None:
    """What its probes and `helm test` start: pods of a simulated cluster start nothing."""
    probed = containers.parts["remoting"].execute("python", "-m", "mqnamesrv.probe", "remoting")
    assert probed.returncode == 0, probed.stderr
    tried = once(NAMESRV, "python", "-m", "mqns.roundtrip", f"127.0.0.1:{containers.port}")
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_jobs_and_scheduler_work(containers: Containers) -> None:
    A.but(timeout_ms=LEASE_MS).register(Connection(containers.port))
    eventually(lambda: not containers.redis.exists(containers.keys.broker(A.name)), RECORDED_WITHIN_S)
    queue = JOBS[0].queue_of(SHARED)

    def done() -> int:
        (worker,) = (one for one in Worker.all(connection=containers.redis) if queue in one.queue_names())
        return worker.successful_job_count

    eventually(done, RECORDED_WITHIN_S)


@pytest.mark.parametrize("part", COMMANDS)
def test_only_tmp_can_be_written_to(containers: Containers, part: str) -> None:
    container = containers.parts[part]
    for folder in OUGHT_TO_HOLD:
        tried = container.execute("touch", f"{folder}/x")
        assert tried.returncode, f"{folder} can be written to"
    assert container.execute("touch", "/tmp/x").returncode == 0
    mounts = [line.split() for line in container.execute("cat", "/proc/mounts").stdout.splitlines()]
    assert [options.split(",")[0] for _, where, _, options, *_ in mounts if where == "/"] == ["ro"]


@pytest.mark.parametrize("part", COMMANDS)
def test_it_has_no_rights(containers: Containers, part: str) -> None:
    lines = containers.parts[part].execute("cat", "/proc/1/status").stdout.splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    assert status["Uid"] == ["10001"] * 4
    assert status["Gid"] == ["10001"] * 4
    assert {status[name][0] for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"] == ["1"]


def test_all_end_at_a_signal(own_containers: Containers) -> None:
    for name, container in own_containers.parts.items():
        assert container.stop() == 0, f"{name}: {container.said()}"


def test_a_drain_goes_on_answering(own_containers: Containers) -> None:
    over = Connection(own_containers.port)
    A.register(over)
    remoting = own_containers.parts["remoting"]
    began = time.monotonic()
    remoting.signal("TERM")
    question = (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"})
    answered = 0
    with suppress(Closed, ConnectionError):  # it lets go of connections one by one
        while time.monotonic() < began + SLOW_S:
            assert A.addr.encode() in over.ask(*question).body
            answered += 1
            time.sleep(0.05)
    assert answered
    eventually(lambda: remoting.state("Running") == "false", SLOW_S)
    assert remoting.state("ExitCode") == "0", remoting.said()


def test_one_container_is_a_whole_name_server() -> None:
    """`podman run IMAGE` with nothing but a volume: the embedded store keeps its data there."""
    port, http_port = free_ports(2)
    ports = {"MQNS_LISTEN_PORT": str(port), "MQNS_HTTP_PORT": str(http_port)}
    env = ports | dict.fromkeys(("MQNS_BIND_ADDRESS", "MQNS_HTTP_BIND_ADDRESS"), "127.0.0.1")
    with running(NAMESRV, env=env, more=("--mount=type=tmpfs,destination=/data,chown",)) as container:
        eventually(lambda: "boot success" in container.said(), SLOW_S)
        over = Connection(port)
        assert A.register(over).code == ResponseCode.SUCCESS
        assert "TA" in topics(port)
        assert container.stop() == 0
