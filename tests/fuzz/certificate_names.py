"""Certificates of peers, damaged: which names Python's ssl reads in them, and whom these prove."""

import ssl
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from access.access_file import load
from access.certificates import CertificateNames, UnreadableCertificate, names_of_peer
from access.principals import Principals
from access.proof import AmbiguousCertificate, BadCredential
from tests.fuzz.known_principals import known, temporary_folder

UNREAD: Final = (
    *(ValueError, TypeError, x509.InvalidVersion, x509.DuplicateExtension),
    *(x509.UnsupportedGeneralNameType, CryptographyDeprecationWarning),
)
"""Of certificates that the other library does not read, though OpenSSL does."""


class _Peer:
    """A TLS session whose peer has shown and proved a certificate.

    A handshake reads it by the same function, which CPython offers for its own tests."""

    def __init__(self, certificate: bytes) -> None:
        self._file = _file()
        body = b64encode(certificate).decode()
        self._file.write_text(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")

    def getpeercert(self) -> Mapping[str, Any]:
        read: Mapping[str, Any] = ssl._ssl._test_decode_cert(str(self._file))  # type: ignore[attr-defined]
        return read


def certificate_names(data: bytes) -> None:
    """Names are those that another library reads, and prove a principal whose pattern they match, or the one error."""
    try:
        names = names_of_peer(_Peer(data))
    except UnreadableCertificate:
        return
    if names is None:
        return
    _compare(names, data)
    before = names.not_after - 1
    try:
        proof = _principals().by_certificate(names, before)
    except AmbiguousCertificate:
        assert len(_matched(names)) > 1, names
        return
    assert [proof.principal.name] if proof else _matched(names) == [], names
    try:
        assert _principals().by_certificate(names, names.not_after) is None
    except BadCredential:
        assert proof is not None


def _compare(names: CertificateNames, data: bytes) -> None:
    assert all(name.isprintable() and name for name in (*names.uris, *names.dns, names.cn or "x"))
    assert names.cn is None or not (names.uris or names.dns)
    try:
        certificate = x509.load_der_x509_certificate(data)
        end, common = certificate.not_valid_after_utc, _common(certificate)
        uris, dns = _alternatives(certificate)
    except UNREAD:
        return
    assert names.not_after == end.timestamp()
    assert [*names.uris] == [uri for uri in uris if uri and uri.isprintable() and uri.isascii()]
    assert [*names.dns] == [name.lower() for name in dns if name and name.isprintable() and name.isascii()]
    assert names.cn == (common if not uris and not dns else None)


def _alternatives(certificate: x509.Certificate) -> tuple[list[str], list[str]]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [], []
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return uris, names.get_values_for_type(x509.DNSName)


def _common(certificate: x509.Certificate) -> str | None:
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(common[0].value) if len(common) == 1 else ""
    return name if name and name.isprintable() else None


def _matched(names: CertificateNames) -> list[str]:
    """Return the principals of `known_principals` that have one of the names."""
    return sorted(_of_uris(names.uris) or _of_dns(names.dns) or ({"agent"} if names.cn == "agent" else ()))


def _of_uris(uris: Iterable[str]) -> set[str]:
    parts = [uri.split("/") for uri in uris]
    agents = any(len(one) == 5 and one[:3] == ["spiffe:", "", "td"] and one[4] == "b" for one in parts)
    apps = "spiffe://td/a/b" in uris
    return {name for name, there in (("agent", agents), ("app", apps)) if there}


def _of_dns(names: Iterable[str]) -> set[str]:
    labels = [name.split(".") for name in names if name.endswith(".svc") and name.count(".") == 1]
    agents = any(first.startswith("b-") for first, _ in labels)
    return {name for name, there in (("agent", agents), ("app", bool(labels))) if there}


@cache
def _principals() -> Principals:
    return load(known()).principals


@cache
def _file() -> Path:
    return temporary_folder() / "certificate.pem"
