"""TLS contexts for connections to peers, with the choices that RocketMQ's `tls.client.*` options give."""

import ssl
from os import PathLike


def tls_context(
    *,
    trust: str | PathLike[str] | None = None,
    certificate: str | PathLike[str] | None = None,
    key: str | PathLike[str] | None = None,
    key_password: str | None = None,
    auth_server: bool = True,
) -> ssl.SSLContext:
    """Return a context for RemotingOptions.tls; all files are PEM.

    With `auth_server` the peer's certificate must be signed by one of `trust`, else by one the system trusts; its
    name is not compared, as in RocketMQ (whose default is to check no certificate). `certificate` and `key` are
    sent to peers that request a client certificate. Raises OSError (ssl.SSLError) for unusable files."""
    context = ssl.create_default_context(cafile=trust)
    context.check_hostname = False
    if not auth_server:
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key, key_password)
    return context
