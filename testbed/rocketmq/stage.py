"""The processes of a test, in one folder, ended with it."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.process import Process
from testbed.rocketmq.enforced import OPEN, Access, Peer
from testbed.rocketmq.releases import HERE, Release

CONF = HERE / "conf"
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=256m")
UNMAPPING = (  # 4.x stores unmap their files by reflection when they end
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)


class Stage:
    """A context: its processes are killed when it is left. `access` is what they prove their principals with."""

    def __init__(self, folder: Path, access: Access = OPEN) -> None:
        self.folder = folder
        self.access = access
        self.home = folder / "home"
        self._processes: list[Process] = []
        conf = self.home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        shutil.copy(CONF / "rmq.logback.xml", conf)
        for part in ("namesrv", "broker", "tools"):
            shutil.copy(CONF / "logback_4x.xml", conf / f"logback_{part}.xml")
        if access.tools:
            (conf / "tools.yml").write_text(access.tools)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.kill()

    def start(
        self, name: str, argv: Sequence[str], *, folder: str = "", env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program without the user's environment; `folder` (default: name) may be one used before."""
        place = self.folder / (folder or name)
        base = {"PATH": os.environ["PATH"], "HOME": str(place), "ROCKETMQ_HOME": str(self.home)}
        process = Process(name, argv, place, base | dict(env or {}))
        self._processes.append(process)
        return process

    def java(
        self,
        name: str,
        release: Release,
        main: str,
        *arguments: str,
        folder: str = "",
        peer: Peer | None = "client",
        heap_mb: int = 64,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a main class of a release, or one of java/*.java; `peer` is what it is to name servers."""
        place = self.folder / (folder or name)
        temporary = place / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        argv = [
            "java",
            f"-Xmx{heap_mb}m",
            *JVM,
            *UNMAPPING,
            *([f"-XX:SharedArchiveFile={release.archive}"] if release.archive.exists() else ()),
            f"-Duser.home={place}",
            f"-Drocketmq.client.logRoot={place}",
            f"-Djava.io.tmpdir={temporary}",
            "-Djava.net.preferIPv4Stack=true",
            *(self.access.options.get(peer, ()) if peer else ()),
            *options,
            "-cp",
            # the archive is of jars that come first
            f"{release.classes}:{release.libraries}/*:{self.home}/conf",
            main,
            *arguments,
        ]
        proves = self.access.environment if peer == "client" else {}
        return self.start(name, argv, folder=folder, env={**proves, **(env or {})})
