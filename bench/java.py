"""Java's own name server, with all of its compilers, as the bench's other side."""

from contextlib import AbstractContextManager
from pathlib import Path

from bench.servers import Server, started
from testbed.rocketmq.releases import HERE as INTEROP
from testbed.rocketmq.releases import release

JAVA_VERSION = "5.5.0"


def java_name_server(port: int, folder: Path, *, core: int) -> AbstractContextManager[Server]:
    """A name server of JAVA_VERSION from Maven, its state in `folder`."""
    folder.mkdir(parents=True)
    conf = folder / "namesrv.conf"
    conf.write_text(f"listenPort={port}\nbindAddress=127.0.0.1\n")
    class_path = f"{INTEROP / 'conf'}:{release(JAVA_VERSION).libraries}/*"
    options = ["-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", f"-Duser.home={folder}"]
    command = [
        "java",
        *options,
        "-cp",
        class_path,
        "org.apache.rocketmq.namesrv.NamesrvStartup",
        "-c",
        str(conf),
    ]
    return started("java", command, {"ROCKETMQ_HOME": str(folder)}, port, core=core, ready="boot success")
