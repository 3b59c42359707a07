"""The certificate of the remoting port, replaced under TLS connections."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.x509 import load_pem_x509_certificate

from faults.fleet import Fleet
from faults.looks import Look
from faults.notes import Tls
from faults.places import OPTIONS, Place, Redis
from faults.row import Row
from testbed.certificates import Certificates, issue, make_certificates
from testbed.eventually import eventually
from testbed.properties import write_properties
from testbed.rocketmq.servers import serve
from testbed.rocketmq.stage import Stage

SHOWN_WITHIN_S = 15.0
LOOKS = 8
"""Connections that are checked: each worker most likely has one of them."""


class Encrypted(Place):
    """A service that takes TLS, and asks for client certificates; all peers speak it."""

    certificates: Certificates


def encrypted(stage: Stage) -> Encrypted:
    store = Redis(stage, "--appendonly", "yes")
    store.await_answer()
    certificates = make_certificates(stage.folder / "certificates")
    server = serve(stage, "ours", OPTIONS | {"redisUrl": store.url} | certificates.server_properties)
    peers = write_properties(stage.folder / "peers.properties", certificates.peer_properties())
    place = Encrypted(
        stage,
        server,
        tls=Tls.of(certificates),
        java_options=("-Dtls.enable=true", f"-Dtls.config.file={peers}"),
    )
    place.certificates = certificates
    return place


@contextmanager
def rotated(place: Encrypted, fleet: Fleet) -> Iterator[None]:
    """Key first, then certificate, as files are replaced; over when all workers show the new one."""
    before = _shown(place)
    issue(place.certificates, "server")
    yield
    eventually(lambda: not before & _shown(place), SHOWN_WITHIN_S)


def _shown(place: Encrypted) -> set[bytes]:
    """The certificates that new connections get."""
    assert place.tls is not None
    found = set()
    for _ in range(LOOKS):
        with (
            socket.create_connection(("127.0.0.1", place.server.port), 5) as plain,
            place.tls.context().wrap_socket(plain) as connection,
        ):
            found.add(connection.getpeercert(binary_form=True) or b"")
    return found


def _serial(place: Encrypted) -> list[str]:
    """Return what openssl prints of the certificate that is in the file now."""
    certificate = load_pem_x509_certificate((place.certificates.folder / "server.pem").read_bytes())
    return [f"serial=0*{certificate.serial_number:X}"]


ROWS = (
    Row(
        name="certificate-rotation",
        title="key and certificate of the remoting port replaced, all peers on TLS",
        place=encrypted,
        fault=rotated,
        lasts_s=2.0,
        look=Look(shows=_serial),
    ),
)
