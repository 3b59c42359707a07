"""Released RocketMQ jars, fetched once through Maven, and java/*.java compiled against them."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from msgspec import Struct

from testbed.maven import Artifact, cache, fetch
from testbed.needs import need

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "java").glob("*.java"))
MODULES = {
    "4.9.7": ("namesrv", "broker", "client", "tools"),
    "4.9.8": ("client", "tools"),  # Maven Central has no more of it
    "5.5.0": ("namesrv", "broker", "container", "client", "tools"),
}
COMPILE_TIMEOUT_S = 300


class Release(Struct, frozen=True):
    """One version, ready to be started."""

    version: str
    libraries: Path
    classes: Path
    """A jar, of java/*.java."""

    @property
    def archive(self) -> Path:
        """Where an archive of loaded classes is, if there is one."""
        return self.classes.with_suffix(".jsa")

    @property
    def is_5x(self) -> bool:
        """Return whether its brokers have the features of 5.0: acting masters, heartbeats, timer messages."""
        return self.version.startswith("5.")


def dashed(version: str) -> str:
    """A version as the names of groups allow it, which may have no dots."""
    return version.replace(".", "-")


def release(version: str) -> Release:
    """Return the release of that version; the first call on a machine downloads it (15 to 94 MB)."""
    need("jdk")
    folder = cache("rmq") / version
    folder.mkdir(parents=True, exist_ok=True)
    artifacts = [
        Artifact("org.apache.rocketmq", f"rocketmq-{module}", version) for module in MODULES[version]
    ]
    with (folder / "lock").open("w") as lock:  # several processes may want it at the same moment
        fcntl.flock(lock, fcntl.LOCK_EX)
        return Release(version, fetch(artifacts, folder), _compiled(folder))


def _compiled(folder: Path) -> Path:
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:12]
    classes = folder / f"classes-{digest}.jar"
    if not classes.exists():
        partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder))
        options = [
            "-nowarn",
            "-Xlint:-options",
            "--release",
            "8",
            "-cp",
            f"{folder}/lib/*",
            "-d",
            str(partial),
        ]
        subprocess.run(["javac", *options, *map(str, SOURCES)], check=True, timeout=COMPILE_TIMEOUT_S)
        jar = folder / "partial.jar"
        subprocess.run(
            ["jar", "cf", str(jar), "-C", str(partial), "."], check=True, timeout=COMPILE_TIMEOUT_S
        )
        shutil.rmtree(partial)
        jar.rename(classes)
    return classes
