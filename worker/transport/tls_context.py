"""An OpenSSL context from Java's `tls.*` options, as far as OpenSSL has what they name."""

import re
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from registry.options.catalogue import Options

__all__ = [
    "TlsUnusable",
    "build_context",
    "certificates_end",
    "openssl_ciphers",
    "openssl_versions",
    "unverified_context",
]

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_NOT: Final = {
    ssl.TLSVersion.TLSv1: ssl.OP_NO_TLSv1,
    ssl.TLSVersion.TLSv1_1: ssl.OP_NO_TLSv1_1,
    ssl.TLSVersion.TLSv1_2: ssl.OP_NO_TLSv1_2,
    ssl.TLSVersion.TLSv1_3: ssl.OP_NO_TLSv1_3,
}
_TLS_1_3_SUITE: Final = re.compile(r"TLS_(AES|CHACHA20)_")


class TlsUnusable(Exception):
    """There is no TLS context to serve with; the message says why."""


def build_context(options: Options) -> ssl.SSLContext:
    """Return the context for accepted connections. Raises TlsUnusable.

    Test mode asks for no client certificate. Otherwise `tls.server.need.client.auth` decides, with two
    differences from Java that OpenSSL brings: `require` always checks the certificate (Java with
    `tls.server.authClient=false` takes any), and `optional` without authClient, where Java takes any or none,
    does not ask."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        _restrict(context, _listed(options.tls_protocols), _listed(options.tls_ciphers))
        if options.tls_test_mode_enable:
            _load_self_signed(context)
        else:
            _load_configured(context, options)
            _ask_for_client_certificates(context, options)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise TlsUnusable(str(error) or type(error).__name__) from error
    return context


def unverified_context() -> ssl.SSLContext:
    """Return the context of a client of this project's own servers, of which it asks nothing secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def certificates_end(path: str) -> float | None:
    """Return when the first certificate of a PEM file ends (Unix s); None of one that cannot be read."""
    from cryptography import x509  # only now: a library of several megabytes

    try:
        certificates = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError):
        return None
    return min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)


def openssl_versions(protocols: list[str]) -> set[ssl.TLSVersion]:
    """Return the versions that JDK protocol names mean; ValueError for one that OpenSSL does not have."""
    if unknown := [name for name in protocols if name not in _VERSIONS]:
        raise ValueError(f"tls.protocols: {', '.join(unknown)} is not supported")
    return {_VERSIONS[name] for name in protocols}


def openssl_ciphers(suites: list[str]) -> list[str]:
    """Return the TLS 1.2 suites among `suites`, their JDK names turned into OpenSSL's; other names stay as they are."""
    return [_openssl_cipher(suite) for suite in suites if not _TLS_1_3_SUITE.match(suite)]


def _openssl_cipher(suite: str) -> str:
    exchange, with_, rest = suite.partition("_WITH_")
    if not with_:
        return suite
    rest = re.sub(r"AES_(\d+)", r"AES\1", rest.replace("_CBC_", "_"))
    rest = rest.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    exchange = exchange.removeprefix("TLS_")
    return (rest if exchange == "RSA" else f"{exchange}_{rest}").replace("_", "-")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _restrict(context: ssl.SSLContext, protocols: list[str], suites: list[str]) -> None:
    versions = openssl_versions(protocols)
    if suites:
        # OpenSSL's TLS 1.3 suites cannot be chosen from Python: they are all on, or the version is off.
        ciphers = openssl_ciphers(suites)
        allowed = versions or {ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3}
        if ciphers:
            context.set_ciphers(":".join(ciphers))
        else:
            allowed = allowed & {ssl.TLSVersion.TLSv1_3}
        if len(ciphers) == len(suites):
            allowed = allowed - {ssl.TLSVersion.TLSv1_3}
        if not allowed:
            raise ValueError("tls.ciphers and tls.protocols leave nothing to use")
        versions = allowed
    if versions:
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        for version, option in _NOT.items():  # a gap between two versions
            if min(versions) < version < max(versions) and version not in versions:
                context.options |= option


def _load_configured(context: ssl.SSLContext, options: Options) -> None:
    if not (options.tls_server_cert_path and options.tls_server_key_path):
        raise ValueError(
            "tls.server.certPath and tls.server.keyPath are needed when tls.test.mode.enable=false"
        )
    # A password is always handed over: OpenSSL would ask the terminal for one.
    context.load_cert_chain(
        options.tls_server_cert_path,
        options.tls_server_key_path,
        password=lambda: options.tls_server_key_password,
    )


def _ask_for_client_certificates(context: ssl.SSLContext, options: Options) -> None:
    wanted = options.tls_server_need_client_auth.lower()
    if wanted == "require":
        context.verify_mode = ssl.CERT_REQUIRED
    elif wanted == "optional" and options.tls_server_auth_client:
        context.verify_mode = ssl.CERT_OPTIONAL
    else:
        return
    if options.tls_server_trust_cert_path:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # Java trusts what the file names, CA or not
        context.load_verify_locations(options.tls_server_trust_cert_path)
    else:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)


def _load_self_signed(context: ssl.SSLContext) -> None:
    from worker.transport.self_signed import self_signed_pem  # only now: a library of several megabytes

    with NamedTemporaryFile(suffix=".pem") as file:
        file.write(self_signed_pem())
        file.flush()
        context.load_cert_chain(file.name)
