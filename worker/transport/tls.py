"""TLS of the wire: which connections may or must use it, and the certificate they get (RocketMQ TlsHelper).

Options are Java's `tls.*`, in the environment or in the file that `tls.config.file` names, which wins."""

import hashlib
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from registry.options.catalogue import Options
from registry.options.tls import TlsMode, with_tls_file
from worker.transport.tls_context import TlsUnusable, build_context, certificates_end
from worker.transport.tls_session import TlsSession

__all__ = ["ServerTls", "TlsUnusable"]

log = logging.getLogger(__name__)


class ServerTls:
    """The TLS context of new connections, built again when its files change."""

    def __init__(self, options: Options) -> None:
        self._given = options
        first = with_tls_file(options)
        self.mode: Final = TlsMode.parse(first.tls_server_mode)
        self._self_signed = first.tls_test_mode_enable
        self._context: ssl.SSLContext | None = None
        self._unusable = "no certificate"
        self._files = _files(first)
        self._hashes = {path: _content_hash(path) for path in self._files.all}
        self._changed: set[str] = set()
        self._failed = False
        self._trust_changes: list[Callable[[], None]] = []
        self.certificates_end_s: float | None = None
        """When the certificate in use ends, or one of its chain (Unix s); None without one, or if it is self-signed."""
        # The self-signed certificate waits for the first connection that wants one: few do, and making it takes
        # a library of several megabytes.
        if self.mode is not TlsMode.DISABLED and not self._self_signed:
            self._build()

    def session(self) -> TlsSession:
        """Return the server's end of a new connection. Raises TlsUnusable where there is no certificate."""
        if self._context is None and self._self_signed:
            self._build()
        if self._context is None:
            raise TlsUnusable(self._unusable)
        return TlsSession(self._context)

    def poll(self) -> None:
        """Reload the files if their content changed; called each half second.

        A new trust file, or a new key and a new certificate, make a new context for new connections; if they are
        no good the old one stays, and the next change of any of them is another try. Unlike in Java a certificate that
        was renewed for the same key is enough."""
        if self._self_signed or self.mode is TlsMode.DISABLED:
            return
        now = {path: _content_hash(path) for path in self._files.all}
        changed = {path for path in self._files.all if now[path] != self._hashes[path]}
        if not changed:
            return
        self._hashes = now
        self._changed |= changed
        files = self._files
        together = files.trust in self._changed or {files.key, files.certificate} <= self._changed
        if self._failed or together or self._fit():
            self._build()

    def _fit(self) -> bool:
        """Whether key and certificate belong together as they are now: new ones may come one after the other."""
        try:
            build_context(with_tls_file(self._given))
        except TlsUnusable:
            return False
        return True

    def _build(self) -> None:
        options = with_tls_file(self._given)
        try:
            self._context = build_context(options)
        except TlsUnusable as error:
            self._failed = True
            self._unusable = str(error)
            kept = "the old certificate stays" if self._context else "TLS connections are refused"
            log.error("TLS: %s; %s until its files change", error, kept)
            return
        if not self._self_signed:
            self.certificates_end_s = certificates_end(options.tls_server_cert_path)
        self._failed = False
        is_new_trust = self._files.trust in self._changed
        self._changed.clear()
        log.info("TLS: new connections get the present certificate, mode %s", self.mode.value)
        for changed in self._trust_changes if is_new_trust else ():
            changed()

    def when_trust_changes(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when a new trust file is in force: connections were verified by the old one."""
        self._trust_changes.append(changed)


class _Files(msgspec.Struct, frozen=True):
    """Paths that are watched; empty where none is configured."""

    key: str
    certificate: str
    trust: str

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(path for path in (self.key, self.certificate, self.trust) if path)


def _files(options: Options) -> _Files:
    return _Files(
        options.tls_server_key_path, options.tls_server_cert_path, options.tls_server_trust_cert_path
    )


def _content_hash(path: str) -> bytes | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:
        return None
