"""Keys and certificates made for a test."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from testbed.certificates import SIGNS

DAYS = 30


class Authority:
    """A certificate authority; `pem` is what trusts it."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.pem = _certificate(self._name, self._name, self._key, self._key, authority=True)

    def issue(self, name: str, password: str = "") -> tuple[bytes, bytes]:
        """(key, certificate) of a new end, PEM; the key encrypted if there is a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        hidden: KeySerializationEncryption = (
            BestAvailableEncryption(password.encode()) if password else NoEncryption()
        )
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden), self._signed(name, key)

    def renew(self, name: str, key: bytes, days: int = DAYS) -> bytes:
        """Another certificate, PEM, of the end that has this key, PEM; it is valid for so many days."""
        loaded = load_pem_private_key(key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return self._signed(name, loaded, days)

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, days: int = DAYS) -> bytes:
        return _certificate(_name(name), self._name, key, self._key, authority=False, days=days)

    def issue_files(self, folder: Path, name: str, password: str = "") -> tuple[str, str]:
        """Paths of the key and the certificate."""
        key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
        texts = self.issue(name, password)
        key.write_bytes(texts[0])
        certificate.write_bytes(texts[1])
        return str(key), str(certificate)

    def file(self, folder: Path) -> str:
        """Path of the authority's own certificate."""
        path = folder / "authority.pem"
        path.write_bytes(self.pem)
        return str(path)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    authority: bool,
    days: int = DAYS,
) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if authority:
        builder = builder.add_extension(SIGNS, critical=True)
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)
