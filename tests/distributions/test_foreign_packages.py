"""The client and the pipeline work where the path leads to packages that are called as the server's are or were.

A user's own `client/`, `pipeline/` or `api/` in the current folder and on PYTHONPATH goes before site-packages."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from mqnamesrv.store import EmbeddedStore
from mqns.broker import BrokerAgent, BrokerConfig, TopicSettings
from testbed.nameserver import ONE_WORKER, NameServer
from tests.distributions.environment import environment

LIBRARY = """
import sys
from mqns.broker import BrokerAgent, BrokerConfig, TopicSettings
from mqns.name_server import NameServerClient

topics = (TopicSettings(topic_name="Orders"), TopicSettings(topic_name="Bills"))
config = BrokerConfig(broker_name="broker-a", broker_ip1="127.0.0.1", namesrv_addr=sys.argv[1], topics=topics)
with BrokerAgent(config), NameServerClient(sys.argv[1]) as name_server:
    print([broker.broker_name for broker in name_server.get_route("Orders").broker_datas])
"""
ABSENT = (
    "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
)
SPARK = """
import sys
from mqpipeline.session import spark_session

spark = spark_session("foreign", {"spark.master": "local[1]"})
read = spark.read.format("redis_stream").options(url=sys.argv[1], streams="orders")
print([row.customer for row in read.schema("customer string").load().collect()])
"""


def run(foreign: Path, *command: str | Path) -> str:
    """What a command says that runs where `foreign` comes first on the path; fails unless it ends with 0."""
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(foreign),
        "PYTHONPATH": str(foreign),
        "COLUMNS": "100",
    }
    done = subprocess.run(command, cwd=foreign, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Path:
    """The `bin` of an environment with mqns[cli]."""
    return environment(tmp_path_factory.mktemp("client"), wheels["mqns"], extras=["cli"])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Path:
    """The `bin` of an environment with mqns alone."""
    return environment(tmp_path_factory.mktemp("library"), wheels["mqns"])


@pytest.fixture
def address(tmp_path: Path, store: EmbeddedStore) -> Iterator[str]:
    """Of a name server that runs."""
    server = NameServer(tmp_path, ONE_WORKER, url=store.url)
    try:
        yield f"127.0.0.1:{server.start().port}"
    finally:
        server.stop()


def test_the_command_mqns(client: Path, foreign: Path, address: str) -> None:
    assert "doctor" in run(foreign, client / "mqns", "--help")
    topics = (TopicSettings(topic_name="Orders"), TopicSettings(topic_name="Bills"))
    with BrokerAgent(BrokerConfig(broker_name="broker-a", namesrv_addr=address, topics=topics)):
        assert "broker-a" in run(foreign, client / "mqns", "-n", address, "routes", "Orders")


def test_a_program_with_the_client_library(library: Path, foreign: Path, address: str) -> None:
    assert run(foreign, library / "python", "-c", LIBRARY, address) == "['broker-a']\n"


def test_the_client_s_environment_holds_nothing_of_the_server(client: Path) -> None:
    modules = ("flask", "gunicorn", "redis", "registry", "rq", "worker")
    assert run(client, client / "python", "-c", ABSENT, *modules) == "[]\n"


def test_a_spark_job_finds_the_data_source_by_its_name(
    tmp_path: Path, wheels: dict[str, Path], foreign: Path, store: EmbeddedStore, redis: Redis
) -> None:
    programs = environment(tmp_path / "pipeline", wheels["mqpipeline"], wheels["pyspark_redis_stream"])
    redis.xadd("orders", {"customer": "Ada"})
    assert run(foreign, programs / "python", "-c", SPARK, store.url) == "['Ada']\n"
