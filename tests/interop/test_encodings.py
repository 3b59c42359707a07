"""Binary headers, and TLS with certificates demanded on both sides: broker, mqadmin, producer and consumer."""

import pytest

from tests.harness.patience import eventually
from tests.interop.admin import Admin, run_command
from tests.interop.brokers import BrokerConfig, start_brokers
from tests.interop.certificates import make_certificates
from tests.interop.clients import Clients
from tests.interop.releases import dashed, release
from tests.interop.servers import Kind, NameServer, serve
from tests.interop.stage import Stage, write_properties

MESSAGES = 20
BINARY = ("-Drocketmq.serialize.type=ROCKETMQ",)


@pytest.fixture(params=["5.5.0", "4.9.7"])
def version(request: pytest.FixtureRequest) -> str:
    """Of all peers."""
    chosen: str = request.param
    return chosen


def test_binary_headers(stage: Stage, server: NameServer, version: str) -> None:
    _work_together(stage, server, version, BINARY, "binary")


def test_tls_with_client_certificates(stage: Stage, kind: Kind, version: str) -> None:
    certificates = make_certificates(stage.folder / "certificates")
    enforcing = serve(stage, kind, name=f"tls-{version}", certificates=certificates)
    path = write_properties(stage.folder / "tls" / "peers.properties", certificates.peer_properties)
    _work_together(stage, enforcing, version, ("-Dtls.enable=true", f"-Dtls.config.file={path}"), "tls")
    for what, without in {"no TLS": [], "no certificate": ["-Dtls.enable=true"]}.items():
        refused = run_command(stage, release(version), enforcing, "clusterList", options=without)
        assert "#Broker Name" not in refused, what
        assert "Exception" in refused, what


def _work_together(
    stage: Stage, server: NameServer, version: str, options: tuple[str, ...], what: str
) -> None:
    of = release(version)
    name = f"broker-{what}-{dashed(version)}"
    topic = f"Topic-{name}"
    (broker,) = start_brokers(stage, [server], [BrokerConfig(of, name, cluster=name)], options)
    admin = Admin(stage, of, options)
    eventually(lambda: f" {broker.address} " in admin(server, "clusterList").out, 30)
    made = admin(server, "updateTopic", "-c", name, "-t", topic, "-r", "2", "-w", "2")
    assert f"create topic to {broker.address} success." in made.out
    clients = Clients(stage, of, server, options)
    assert clients.produce(topic, MESSAGES).sent == MESSAGES
    assert clients.consume(topic, MESSAGES).distinct == MESSAGES
    broker.shut_down()
    eventually(lambda: broker.address not in admin(server, "clusterList").out, 5)
    admin.close()
