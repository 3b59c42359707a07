"""An archive of the classes that a broker loads, from which all Java processes of its release start.

Loading them is a quarter of the processor time that a broker's start takes; from an archive (Java's class data sharing)
they are mapped. Java does without one that does not fit it."""

import fcntl
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from testbed.ports import HA, broker_port
from testbed.properties import write_properties
from testbed.rocketmq.brokers import BOOTED, MAIN
from testbed.rocketmq.releases import Release
from testbed.rocketmq.stage import Stage

WITHIN_S: Final = 120.0


def archive(release: Release) -> None:
    """Write the archive of a release that has brokers, unless it is there or another process does so."""
    with release.archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not release.archive.exists():
            # beside the archive, to be renamed
            with tempfile.TemporaryDirectory(dir=release.archive.parent) as folder:
                _write(release, Path(folder))


def _write(release: Release, folder: Path) -> None:
    partial, port = folder / "partial.jsa", broker_port()
    settings = {
        "brokerIP1": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": str(port),
        "haListenPort": str(port + HA),
        "namesrvAddr": "127.0.0.1:1",  # there is none
        "storePathRootDir": str(folder / "store"),
        "storePathCommitLog": str(folder / "store" / "commitlog"),
    }
    path = write_properties(folder / "broker.conf", settings)
    with Stage(folder / "stage") as stage:
        options = ["-XX:+RecordDynamicDumpInfo"]
        broker = stage.java("broker", release, MAIN, "-c", str(path), heap_mb=384, options=options)
        broker.await_printed(BOOTED, WITHIN_S)
        dump = ["jcmd", str(broker.pid), "VM.cds", "dynamic_dump", str(partial)]
        subprocess.run(dump, check=True, stdout=subprocess.DEVNULL, timeout=WITHIN_S)
    partial.rename(release.archive)
