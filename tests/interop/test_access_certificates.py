"""Brokers that show a certificate (docs/conformance.md, Access; docs/access.md)."""

from typing import Final

import pytest

from testbed.access_file import AccessFile
from testbed.certificates import issue, make_certificates
from testbed.eventually import eventually
from testbed.properties import write_properties
from testbed.rocketmq.brokers import Broker, BrokerConfig
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import serve
from testbed.rocketmq.stage import Stage
from tests.interop.events import events

ROUNDS_S: Final = 40.0
"""Several rounds of registration."""


def brokers_are(common_name: str) -> str:
    """Return an access file for brokers with certificates of this name."""
    return f'[principals.brokers]\nroles = ["broker"]\ncertificates = ["cn:{common_name}"]\n'


def refused(broker: Broker) -> bool:
    return "access denied: broker needs mtls; caller wire:" in broker.process.printed()


@pytest.mark.conformance("AC-15")
def test_brokers_are_known_by_their_certificates(
    stage: Stage, release_4: Release, release_5: Release
) -> None:
    """First the one of 4.9.7 alone matches, then the one of 5.5.0, over the connections they have."""
    certificates = make_certificates(stage.folder / "certificates")
    issue(certificates, "other")
    file = AccessFile(stage.folder)
    file.write(brokers_are("interop client"))
    given = {"accessFile": str(file.path), "accessBroker": "mtls", "tls.server.need.client.auth": "optional"}
    server = serve(stage, "ours", certificates.server_properties | given, name="mtls")

    def start(release: Release, name: str, subject: str) -> Broker:
        path = write_properties(stage.folder / f"{name}.properties", certificates.peer_properties(subject))
        options = ["-Dtls.enable=true", f"-Dtls.config.file={path}"]
        return Broker(stage, BrokerConfig(release, name), [server], options)

    def actors() -> set[tuple[str, str]]:
        recorded = events(stage.folder / "mtls" / "data")
        return {
            (event["broker"], event["actor"]) for event in recorded if event["kind"] == "broker_registered"
        }

    older, newer = start(release_4, "older", "client"), start(release_5, "newer", "other")
    for broker in (older, newer):
        broker.await_boot()
    server.await_brokers("older", 0)
    eventually(lambda: refused(newer), ROUNDS_S)
    assert actors() == {("older", "mtls:brokers")}
    assert not refused(older)

    file.write(brokers_are("interop other"))
    server.await_brokers("newer", 0, within_s=ROUNDS_S)
    eventually(lambda: refused(older), ROUNDS_S)
    assert actors() == {("older", "mtls:brokers"), ("newer", "mtls:brokers")}
