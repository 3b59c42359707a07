"""HAProxy in front of name servers, as docs/examples/haproxy.cfg sets it up."""

import os
import re
import shutil
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tests.harness.patience import eventually
from tests.interop.ports import free_port
from tests.interop.process import Process
from tests.interop.servers import NameServer
from tests.interop.stage import Stage

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "haproxy.cfg"
SYSTEM = ("/usr/sbin", "/usr/local/sbin")
"""Where haproxy lies, and users' PATH may not lead."""
IDLE_S = 180
END_S = 5.0
CUT_FOR_IDLENESS = re.compile(r" \d+ (cD|sD) ")
"""In HAProxy's log, behind the bytes of a connection that ended: `timeout client` or `timeout server` was over."""

Proxy = Literal["send-proxy-v2", "send-proxy", "no-send-proxy"]


class Balancer(NameServer):
    """Looks as one name server to its peers; two are behind it, the same one twice if only one is given."""

    def __init__(
        self,
        stage: Stage,
        servers: Sequence[NameServer],
        *,
        name: str = "balancer",
        proxy: Proxy = "send-proxy-v2",
        idle_s: int = IDLE_S,
    ) -> None:
        self._stage = stage
        self._name = name
        self._starts = 0
        port = free_port()
        super().__init__("ours", self._started(port, servers, proxy, idle_s), port)

    def start(
        self, servers: Sequence[NameServer], *, proxy: Proxy = "send-proxy-v2", idle_s: int = IDLE_S
    ) -> None:
        """Start it again at its port, perhaps otherwise than before."""
        self.process = self._started(self.port, servers, proxy, idle_s)

    def stop(self) -> None:
        """Its process ends, and with it all connections."""
        self.process.signal(signal.SIGKILL)
        self.process.await_end(END_S)

    def cuts(self) -> int:
        """Connections that it ended for their silence."""
        return len(CUT_FOR_IDLENESS.findall(self.process.printed()))

    def _started(self, port: int, servers: Sequence[NameServer], proxy: Proxy, idle_s: int) -> Process:
        self._starts += 1
        program = shutil.which("haproxy", path=os.pathsep.join((os.environ["PATH"], *SYSTEM)))
        assert program, "haproxy is not installed"
        env = {
            "NAMESRV_BIND": f"127.0.0.1:{port}",
            "NAMESRV_1": servers[0].address,
            "NAMESRV_2": servers[-1].address,
            "PROXY": proxy,
            "IDLE": f"{idle_s}s",
        }
        name = f"{self._name}-{self._starts}"
        process = self._stage.start(name, [program, "-db", "-f", str(EXAMPLE)], env=env)
        eventually(lambda: _listens(port), END_S)
        return process


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
