"""A stage on which access is enforced: each name server asks its peers for a proof, and each peer shows one.

Brokers show a certificate, clients and mqadmin sign over TLS, and what a test asks by itself shows a certificate too
(docs/access.md, docs/interop.md)."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from access.tokens import new_token
from testbed.access_file import AccessFile, principal
from testbed.certificates import Certificates, issue, make_certificates
from testbed.properties import write_properties

Peer: TypeAlias = Literal["broker", "client"]

CLIENT_KEY, REVOKED_KEY, CLIENT_SECRET = "interop-client", "interop-revoked", "a client's, 0123456789"
ADMIN_KEY, ADMIN_SECRET = "interop-admin", "an admin's, 0123456789"
PRINCIPALS: Final = """
[principals.brokers]
roles = ["broker"]
certificates = ["cn:interop client"]
[principals.others]
roles = ["broker"]
certificates = ["cn:interop other"]
[principals.observers]
roles = ["reader"]
certificates = ["cn:interop observer"]
[principals.console]
roles = ["admin"]
tokens = [{ file = "token" }]
[principals.revoked]
roles = ["reader"]
tokens = [{ file = "revoked-token" }]
keys = [{ accessKey = "interop-revoked", secrets = [{ file = "client" }] }]
"""
REVOKED: Final = "principal:revoked"
"""What a test may revoke."""
RULES: Final = {
    "accessProfile": "secure",
    "accessRead": "signed mtls token",
    "accessBroker": "mtls",
    "accessAdmin": "signed token",
    "accessConfig": "signed token",
}
"""With the ownershipGuard of the profile. Over TLS only, as signatures count for admin and config from elsewhere."""


class Access(Struct, frozen=True):
    """What peers on a stage prove their principals with; by default nothing.

    `tls` are properties of every name server there, `rules` of ours; `options` those of JVMs by what runs in them;
    `environment` that of Java clients; `tools` the text of mqadmin's tools.yml. `observer` is the TLS of a test that
    reads, `stranger` that of a peer without a certificate; `other_broker` are options of a JVM whose broker is another
    principal. `token` is one of an admin over HTTP; `certificates` has that of brokers as `client`."""

    tls: Mapping[str, str] = {}
    rules: Mapping[str, str] = {}
    options: Mapping[Peer, tuple[str, ...]] = {}
    environment: Mapping[str, str] = {}
    other_broker: tuple[str, ...] = ()
    tools: str = ""
    token: str = ""
    revoked_token: str = ""
    certificates: Certificates | None = None
    observer: ssl.SSLContext | None = None
    stranger: ssl.SSLContext | None = None


OPEN: Final = Access()


def enforced(folder: Path) -> Access:
    """Write certificates, keys and the access file to a folder, and return which peer shows what."""
    certificates = make_certificates(folder / "certificates")
    for subject in ("observer", "other"):
        issue(certificates, subject)
    file = AccessFile(folder)
    keys = principal("clients", "reader", key=CLIENT_KEY, secrets='{ file = "client" }')
    admins = principal("admins", "admin", key=ADMIN_KEY, secrets='{ file = "admin" }')
    tokens = {name: new_token().token.reveal() for name in ("token", "revoked-token")}
    file.write(PRINCIPALS + keys + admins, client=CLIENT_SECRET, admin=ADMIN_SECRET, **tokens)
    return Access(
        tls=certificates.server_properties | {"tls.server.need.client.auth": "optional"},
        rules=RULES | {"accessFile": str(file.path)},
        options={
            "broker": _options(folder / "brokers.properties", certificates.peer_properties()),
            "client": _options(folder / "clients.properties", certificates.trusting_properties),
        },
        other_broker=_options(folder / "others.properties", certificates.peer_properties("other")),
        environment={"ACCESS_KEY": CLIENT_KEY, "SECRET_KEY": CLIENT_SECRET},
        tools=f"accessKey: {ADMIN_KEY}\nsecretKey: {ADMIN_SECRET}\n",
        token=tokens["token"],
        revoked_token=tokens["revoked-token"],
        certificates=certificates,
        observer=certificates.context("observer"),
        stranger=certificates.context(),
    )


def _options(path: Path, properties: Mapping[str, str]) -> tuple[str, ...]:
    return "-Dtls.enable=true", f"-Dtls.config.file={write_properties(path, properties)}"
