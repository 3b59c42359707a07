"""Names in the certificate of a peer, which a TLS handshake has verified."""

import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

__all__ = ["CertificateNames", "UnreadableCertificate", "names_in", "names_of_peer"]

NAMES_MOST: Final = 100
"""Names that are compared with patterns; one certificate may have thousands."""


class UnreadableCertificate(Exception):
    """A certificate whose names or end Python cannot read, or with more than 100 names."""


class CertificateNames(msgspec.Struct, frozen=True):
    """Names by which a principal is known, in the order of the certificate; `cn` only without the others.

    `not_after` is its end in Unix seconds."""

    not_after: float
    uris: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    cn: str | None = None


class Peer(Protocol):
    """An SSLSocket or SSLObject."""

    def getpeercert(self) -> Mapping[str, Any] | None:
        """Return the certificate as a dictionary, empty if it was not verified."""


def names_of_peer(peer: Peer) -> CertificateNames | None:
    """Return the names of the peer's certificate, None if it showed none that was verified.

    Raises UnreadableCertificate."""
    try:
        certificate = peer.getpeercert()
    except (ValueError, ssl.SSLError) as error:  # a name that is no UTF-8, among others
        raise UnreadableCertificate(f"the certificate cannot be read ({type(error).__name__})") from None
    return names_in(certificate) if certificate else None


def names_in(certificate: Mapping[str, Any]) -> CertificateNames:
    """Return the names in what `getpeercert` returned. Raises UnreadableCertificate.

    A name with characters that none has, such as NUL, is left out, but leaves no place for `cn` either. Those of
    URIs and DNS names are ASCII: the small letter of the Kelvin sign is k, so that one would be another name."""
    others = [(kind, name) for kind, name in certificate.get("subjectAltName", ()) if kind in ("URI", "DNS")]
    if len(others) > NAMES_MOST:
        raise UnreadableCertificate(f"the certificate has {len(others)} names, more than {NAMES_MOST}")
    return CertificateNames(
        _end(certificate),
        tuple(_usable(name for kind, name in others if kind == "URI" and name.isascii())),
        tuple(_usable(name.lower() for kind, name in others if kind == "DNS" and name.isascii())),
        None if others else _common_name(certificate),
    )


def _end(certificate: Mapping[str, Any]) -> float:
    try:
        return float(ssl.cert_time_to_seconds(certificate["notAfter"]))
    except (KeyError, TypeError, ValueError):
        raise UnreadableCertificate("the certificate has no end that can be read") from None


def _common_name(certificate: Mapping[str, Any]) -> str | None:
    """Return the common name of the subject, None if it has several."""
    names = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    return next(_usable(names), None) if len(names) == 1 else None


def _usable(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if name and name.isprintable())
