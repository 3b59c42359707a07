"""Clients that are not Java's: C++ (cpp/send.py), Go (go/main.go) and Node (node/send.js), in the releases that
`requirements/client-cpp.txt`, `go/go.mod` and `node/package-lock.json` name."""

from itertools import count
from pathlib import Path
from typing import Final, Literal

from mqns.remoting.acl import AclCredentials
from testbed.needs import need
from testbed.process import Process
from testbed.rocketmq.clients import signing
from testbed.rocketmq.servers import Addressed
from testbed.rocketmq.stage import Stage

Language = Literal["cpp", "go", "node"]
HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[1] / "build"
PROGRAMS: Final[dict[Language, tuple[str, ...]]] = {
    "cpp": (str(BUILD / "client-cpp" / "bin" / "python"), str(HERE / "cpp" / "send.py")),
    "go": (str(BUILD / "client-go" / "send"),),
    "node": ("node", str(HERE / "node" / "send.js")),
}
NUMBERS: Final = count(1)
ENVIRONMENT: Final = {"NODE_PATH": str(BUILD / "client-node" / "node_modules")}


def send(
    stage: Stage,
    language: Language,
    server: Addressed,
    topic: str,
    credentials: AclCredentials | None = None,
) -> Process:
    """Start a client that sends one message; its outcome is `Sent`."""
    need(f"client-{language}")
    name = f"{language}-{next(NUMBERS)}"
    argv = [*PROGRAMS[language], server.address, topic]
    return stage.start(name, argv, env=ENVIRONMENT | signing(credentials))
