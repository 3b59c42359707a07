"""Callers that show a certificate (docs/conformance.md, AC; docs/access.md)."""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import A
from testbed.certificates import Certificates, make_certificates
from testbed.connection import Closed, Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.worker.transport.client import insecure
from worker.transport.renewed_trust import CLOSED_WITHIN_S

Start = Callable[..., NameServer]
REFUSED, DONE = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
SLACK_S: Final = 3.0
"""Of a loaded machine."""
FILE: Final = """
[principals.brokers]
roles = ["broker"]
certificates = ["uri:spiffe://example.org/*/broker", "cn:old-broker", "dns:both.example"]
[principals.others]
roles = ["broker"]
certificates = ["dns:*.example"]
[principals.operators]
roles = ["operator"]
certificates = ["dns:admin.local"]
"""


class Authority:
    """The CA of a test, which signs client certificates with any names."""

    def __init__(self, folder: Path) -> None:
        self.files: Certificates = make_certificates(folder)
        key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key = key
        self._ca = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        self._client = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def client(
        self, cn: str, *alternatives: x509.GeneralName, ends: timedelta = timedelta(days=1)
    ) -> ssl.SSLContext:
        """Return the context of a client with a certificate of these names."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)]))
            .issuer_name(self._ca.subject)
            .public_key(self._client.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + ends)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        path = self.files.folder / "shown.pem"
        path.write_bytes(
            self._client.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(path)
        return context


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def start(launch: Start, authority: Authority, tmp_path: Path) -> Start:
    """Starts servers for one test that ask for certificates, with an access file."""
    file = tmp_path / "access.toml"
    file.write_text(FILE)
    file.chmod(0o600)
    tls = authority.files.server_properties | {"tls.server.need.client.auth": "optional"}
    return partial(launch, accessProfile="", accessFile=str(file), **tls)


def register(connection: Connection, name: str = "b") -> int:
    return int(A.but(name=name).register(connection).code)


@pytest.mark.conformance("AC-15")
def test_a_certificate_that_matches_registers_brokers_and_another_does_not(
    start: Start, authority: Authority
) -> None:
    server = start(accessBroker="mtls")
    broker = Connection(server.port, tls=authority.client("x", uri("spiffe://example.org/ns/broker")))
    assert [register(broker) for _ in range(3)] == [DONE] * 3
    with server.store() as store:
        (_, event), *_ = store.xrevrange(server.keys.events, count=1)
    assert (event["actor"], event["peer"]) == ("mtls:brokers", f"127.0.0.1:{broker.local[1]}")
    for other in (
        authority.client("x", uri("spiffe://example.org/a/b/broker")),
        authority.client("x", uri("spiffe://example.net/ns/broker")),
        authority.client("unknown"),
        None,
    ):
        assert register(Connection(server.port, tls=other), "c") == REFUSED
    operator = Connection(server.port, tls=authority.client("x", x509.DNSName("ADMIN.local")))
    assert register(operator, "c") == REFUSED
    kv = {"namespace": "n", "key": "k", "value": "v"}
    assert operator.ask(RequestCode.PUT_KV_CONFIG, kv).code == DONE


@pytest.mark.conformance("AC-16")
def test_the_common_name_counts_alone_and_two_principals_are_none(start: Start, authority: Authority) -> None:
    server = start(accessBroker="mtls open", accessRead="open")
    mtls = start(accessBroker="mtls")
    by_cn = authority.client("old-broker")
    assert register(Connection(mtls.port, tls=by_cn)) == DONE
    only_cn_matches = authority.client("old-broker", uri("spiffe://example.net/x"))
    assert register(Connection(mtls.port, tls=only_cn_matches), "c") == REFUSED
    two = Connection(server.port, tls=authority.client("x", x509.DNSName("both.example")))
    assert register(two, "c") == REFUSED
    assert two.usable()
    eventually(lambda: "matches" in server.said() and "[ERROR]" in server.said())
    assert "principal brokers" in server.said()
    assert "principal others" in server.said()


def test_the_rights_of_a_certificate_end_with_it(start: Start, authority: Authority) -> None:
    server = start(accessBroker="mtls")
    ending = authority.client("old-broker", ends=timedelta(seconds=6))
    connection = Connection(server.port, tls=ending)
    assert register(connection) == DONE
    eventually(lambda: register(connection) == REFUSED, 9)
    assert connection.usable()


def test_without_a_certificate_where_one_is_demanded_nothing_is_answered(
    start: Start, authority: Authority
) -> None:
    server = start(**{"tls.server.need.client.auth": "require", "tls.server.mode": "enforcing"})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, Closed, ConnectionError)):
        Connection(server.port, tls=context).usable()


def test_a_new_trust_file_closes_what_it_did_not_verify_and_nothing_is_lost(
    start: Start, authority: Authority, tmp_path: Path
) -> None:
    server = start(accessBroker="mtls", remotingWorkers="1")
    trusted = authority.client("old-broker")
    brokers = [Connection(server.port, tls=trusted) for _ in range(4)]
    names = {f"b-{number}": connection for number, connection in enumerate(brokers)}
    for number, (name, connection) in enumerate(names.items()):
        broker = A.but(name=name, addr=f"127.0.9.{number}:10911")
        assert broker.register(connection).code == DONE
    session = brokers[0].tls_session
    assert session
    others = [Connection(server.port), Connection(server.port, tls=insecure())]
    other = Authority(tmp_path / "other")
    trust = authority.files.folder / "ca.pem"
    began = time.monotonic()
    trust.write_bytes((tmp_path / "other" / "ca.pem").read_bytes())
    ended = []
    for connection in brokers:
        assert connection.closed(CLOSED_WITHIN_S + SLACK_S)
        ended.append(time.monotonic() - began)
    assert 4 < ended[0] < ended[-1] - 10
    assert all(connection.usable() for connection in others)
    assert "4 connections with certificates are closed within 30 s" in server.said()
    body = others[0].ask(RequestCode.GET_BROKER_CLUSTER_INFO).body.decode()
    assert [name for name in names if f'"brokerName":"{name}"' in body] == [*names]
    for resumes in (session, None):
        with pytest.raises((ssl.SSLError, Closed, ConnectionError)):
            Connection(server.port, tls=trusted, resumes=resumes).usable()
    assert Connection(server.port, tls=other.client("old-broker")).usable()
