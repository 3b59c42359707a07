"""The principals that the targets of access know: one access file with its secrets, and tokens of a store."""

import atexit
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from access.classes import ALL, AccessClass
from access.credentials import TokenHash
from access.live import Stored
from access.principal import StoredToken
from access.roles import Role
from access.tokens import digest_of
from tests.access.files import write

READER: Final = AccessClass.READ
BROKER: Final = AccessClass.READ | AccessClass.BROKER
OPERATOR: Final = AccessClass.READ | AccessClass.ADMIN | AccessClass.AUDIT
SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "RocketMQ": ("12345678-of-old", "12345678-of-new"),
    "agent": ("the-agent's-secret",),
    "app": ("schlüssel-der-app",),
    "over": (),
}
"""Those in force of each access key."""
CLASSES: Final[Mapping[str, AccessClass]] = {"RocketMQ": OPERATOR, "agent": BROKER, "app": READER}
"""By access key; the principal `agent` is limited to names that begin with c, b, o."""
TOKENS: Final[Mapping[str, AccessClass]] = {
    f"mqns_operator_{'A' * 43}": OPERATOR,
    f"mqns_limited0_{'B' * 42}E": OPERATOR,
    f"mqns_scraper0_{'C' * 42}I": AccessClass.METRICS,
    f"mqns_0storead_{'D' * 42}M": ALL,
}
"""Those that are good, the last one of the store; of the second its principal has brokers with b alone."""
BAD_TOKENS: Final = (f"mqns_toobad00_{'E' * 42}Q", f"mqns_revoked0_{'F' * 42}U")
STORED: Final = [*TOKENS][-1]
LIMITED: Final = [*TOKENS][1]
REVOKED: Final = BAD_TOKENS[1]
IDS_OF_FILE: Final = frozenset(token.split("_")[1] for token in (*TOKENS, *BAD_TOKENS) if token != STORED)
END: Final = "2020-01-01T00:00:00Z"
TEXT: Final = f"""
[principals.mqadmin]
roles = ["operator"]
keys = [{{ accessKey = "RocketMQ", secrets = [{{ file = "RocketMQ.0" }}, {{ file = "RocketMQ.1" }}] }}]
[principals.agent]
roles = ["broker"]
limits = {{ clusters = ["c*"], brokers = ["b*"], topics = ["o*"], kv = [] }}
keys = [{{ accessKey = "agent", secrets = [{{ file = "agent.0" }}] }}]
certificates = ["uri:spiffe://td/*/b", "dns:b-*.svc", "cn:agent"]
[principals.app]
roles = ["reader"]
keys = [{{ accessKey = "app", secrets = [{{ file = "app.0" }}] }}]
certificates = ["dns:*.svc", "uri:spiffe://td/a/b"]
[principals.over]
roles = ["reader"]
keys = [{{ accessKey = "over", secrets = [{{ file = "over.0", expires = {END} }}] }}]
[principals.console]
roles = ["operator"]
tokens = [{{ file = "token.0" }}, {{ file = "bad.0", expires = {END} }}]
[principals.limited]
roles = ["operator"]
limits = {{ brokers = ["b*"] }}
tokens = [{{ id = "limited0", hash = "sha256:{digest_of(LIMITED).reveal()}" }}, {{ file = "bad.1" }}]
[principals.prometheus]
roles = ["scraper"]
tokens = [{{ file = "token.2" }}]
"""


@cache
def known() -> Path:
    """Return the access file."""
    folder = temporary_folder()
    for key, secrets in SECRETS.items():
        for at, secret in enumerate(secrets or ("not in force any more",)):
            write(folder / f"{key}.{at}", secret)
    for name, tokens in (("token", TOKENS), ("bad", BAD_TOKENS)):
        for at, token in enumerate(tokens):
            write(folder / f"{name}.{at}", token)
    return write(folder / "access.toml", TEXT)


def temporary_folder() -> Path:
    """Return a folder that goes when the process ends."""
    folder = Path(mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def stored() -> Stored:
    """Return what the store has: the last of TOKENS, and that the last of BAD_TOKENS is revoked."""
    token = StoredToken("guest", TokenHash("0storead", digest_of(STORED)), frozenset({Role.ADMIN}))
    return Stored((token,), frozenset({"token:revoked0"}))
