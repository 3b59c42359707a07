"""A throw-away CA and what it signs, and the property files in which Java names them (tls.config.file)."""

import ipaddress
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from msgspec import Struct

VALID = timedelta(days=1)
HERE = (x509.IPAddress(ipaddress.ip_address("127.0.0.1")),)
SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""What a CA's key may do; Python 3.13 demands it, and that each certificate names the key of its issuer."""


class Certificates(Struct, frozen=True):
    """Files of one test run. Keys are PKCS#8, which Netty demands."""

    folder: Path

    @property
    def server_properties(self) -> dict[str, str]:
        """Return the properties of a name server that requires client certificates."""
        return {
            "tls.test.mode.enable": "false",
            "tls.server.need.client.auth": "require",
            "tls.server.authClient": "true",
            "tls.server.trustCertPath": str(self.folder / "ca.pem"),
            "tls.server.keyPath": str(self.folder / "server.key"),
            "tls.server.certPath": str(self.folder / "server.pem"),
        }

    def peer_properties(self, subject: str = "client") -> dict[str, str]:
        """Return the properties of a broker or client that checks the server and sends this subject's certificate."""
        return {
            "tls.server.keyPath": str(self.folder / "server.key"),
            "tls.server.certPath": str(self.folder / "server.pem"),
            **self.trusting_properties,
            "tls.client.keyPath": str(self.folder / f"{subject}.key"),
            "tls.client.certPath": str(self.folder / f"{subject}.pem"),
        }

    @property
    def trusting_properties(self) -> dict[str, str]:
        """Return the properties of a client that checks the server and has no certificate."""
        return {
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(self.folder / "ca.pem"),
        }

    def context(self, subject: str = "") -> ssl.SSLContext:
        """Return the TLS of a peer that checks the server, and shows the certificate of this subject, or none."""
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        context.check_hostname = False
        if subject:
            context.load_cert_chain(self.folder / f"{subject}.pem", self.folder / f"{subject}.key")
        return context


def make_certificates(folder: Path) -> Certificates:
    """Write a CA, a server certificate for 127.0.0.1 and a client certificate."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = _key(folder / "ca.key")
    name = _name("interop CA")
    builder = _builder("interop CA", authority.public_key(), name)
    own = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
    )
    _write(folder / "ca.pem", own.sign(authority, hashes.SHA256()))
    for subject in ("server", "client"):
        _issue(folder, subject, authority)
    return Certificates(folder)


def issue(certificates: Certificates, subject: str, *names: x509.GeneralName) -> None:
    """Write a key and a certificate of the same CA, whose common name is `interop SUBJECT`, in place of those there
    are; it is of this machine unless other alternative names are given."""
    authority = load_pem_private_key((certificates.folder / "ca.key").read_bytes(), None)
    assert isinstance(authority, rsa.RSAPrivateKey)
    _issue(certificates.folder, subject, authority, names or HERE)


def _issue(
    folder: Path, subject: str, authority: rsa.RSAPrivateKey, names: Sequence[x509.GeneralName] = HERE
) -> None:
    builder = _builder(
        f"interop {subject}", _key(folder / f"{subject}.key").public_key(), _name("interop CA")
    )
    alternatives = x509.SubjectAlternativeName(names)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    issued = builder.add_extension(alternatives, critical=False).add_extension(issuer, critical=False)
    _write(folder / f"{subject}.pem", issued.sign(authority, hashes.SHA256()))


def _key(path: Path) -> rsa.RSAPrivateKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: str, key: rsa.RSAPublicKey, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
    )


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
