"""HAProxy in front of name servers, as docs/examples/haproxy.cfg sets it up."""

import os
import re
import shutil
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from testbed.eventually import eventually
from testbed.needs import need
from testbed.ports import free_port
from testbed.process import Process
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "haproxy.cfg"
SYSTEM = ("/usr/sbin", "/usr/local/sbin")
"""The folder of haproxy, which may not be on PATH."""
IDLE_S = 180
END_S = 5.0
CUT_FOR_IDLENESS = re.compile(r" \d+ (cD|sD) ")
"""In HAProxy's log, behind the bytes of a connection that ended: `timeout client` or `timeout server` was over."""

Proxy = Literal["send-proxy-v2", "send-proxy", "no-send-proxy"]


class Balancer(NameServer):
    """One address for two name servers, or for the same one twice."""

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
        process = self._started(port, servers, proxy, idle_s)
        super().__init__("ours", process, port, stage.access.observer)

    def start(
        self, servers: Sequence[NameServer], *, proxy: Proxy = "send-proxy-v2", idle_s: int = IDLE_S
    ) -> None:
        """Start it again at its port, perhaps with other options."""
        self.process = self._started(self.port, servers, proxy, idle_s)

    def stop(self) -> None:
        """End its process, and with it all connections."""
        self.process.signal(signal.SIGKILL)
        self.process.await_end(END_S)

    def cuts(self) -> int:
        """Return the number of connections that it closed because they were idle."""
        return len(CUT_FOR_IDLENESS.findall(self.process.printed()))

    def _started(self, port: int, servers: Sequence[NameServer], proxy: Proxy, idle_s: int) -> Process:
        self._starts += 1
        need("haproxy")
        program = shutil.which("haproxy", path=os.pathsep.join((os.environ["PATH"], *SYSTEM)))
        assert program
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
