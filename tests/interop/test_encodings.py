"""Binary headers, and TLS with certificates demanded on both sides: broker, mqadmin, producer and consumer."""

import pytest

from testbed.certificates import make_certificates
from testbed.properties import write_properties
from testbed.rocketmq.admin import run_command
from testbed.rocketmq.releases import release
from testbed.rocketmq.servers import Kind, NameServer, serve
from testbed.rocketmq.stage import Stage
from tests.interop.together import work_together

BINARY = ("-Drocketmq.serialize.type=ROCKETMQ",)


@pytest.fixture(params=["5.5.0", "4.9.7"])
def version(request: pytest.FixtureRequest) -> str:
    """Of all peers."""
    chosen: str = request.param
    return chosen


def test_binary_headers(stage: Stage, server: NameServer, version: str) -> None:
    work_together(stage, server, version, BINARY, "binary")


def test_binary_headers_of_peers_that_prove_who_they_are(
    enforced_stage: Stage, enforced_server: NameServer
) -> None:
    work_together(enforced_stage, enforced_server, "5.5.0", BINARY, "binary")


def test_tls_with_client_certificates(stage: Stage, kind: Kind, version: str) -> None:
    certificates = make_certificates(stage.folder / "certificates")
    enforcing = serve(stage, kind, name=f"tls-{version}", certificates=certificates)
    path = write_properties(stage.folder / "tls" / "peers.properties", certificates.peer_properties())
    work_together(stage, enforcing, version, ("-Dtls.enable=true", f"-Dtls.config.file={path}"), "tls")
    for what, without in {"no TLS": [], "no certificate": ["-Dtls.enable=true"]}.items():
        refused = run_command(stage, release(version), enforcing, "clusterList", options=without)
        assert "#Broker Name" not in refused, what
        assert "Exception" in refused, what
