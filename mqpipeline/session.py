"""The Spark session of every job."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from mqpipeline.java import java_home_here
from mqpipeline.options import Options

SUBMITTED = "PYSPARK_GATEWAY_PORT"  # where a driver in Python finds the Spark of spark-submit
LOOPBACK = "127.0.0.1"
LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
"""An option for Java."""
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
FOLDER_LONGEST = 107 - len("/.01234567-0123-0123-0123-0123456789ab.sock")
"""Bytes of the path of a folder with Unix sockets, whose own have 107 at most."""
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # an odd value of one entry is null, and ends no run of all others
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Without a limit of bytes they are not counted at each row, which takes time that grows with the square of a
    # batch's rows where a list or a map is null. An entry has some 60 KB at most.
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.python.daemon.module": "mqpipeline.daemon",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # two more calls for each column of each plan
    "spark.ui.showConsoleProgress": "false",
}
"""What every job relies on, however it is submitted."""

OWN = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
    "spark.ui.enabled": "false",
    JAVA_OPTIONS: LOGGING,
    "spark.sql.ui.retainedExecutions": "10",  # their plans fill the memory of a session that lives long
}
"""Settings of a session that a process of ours starts. `spark-submit` starts one before us, with what its caller
chose."""


def with_logging(sized: Mapping[str, str], options: Options) -> Mapping[str, str]:
    """Return the settings of a session of ours whose Java logs in the form of these options."""
    if options.log_format == "text":
        return sized
    file = Path(__file__).with_name("log4j2-json.properties").as_uri()
    as_json = f"-Dlog4j2.configurationFile={file} -Dmqpipeline.namespace={','.join(options.namespaces)}"
    java = {**OWN, **sized}[JAVA_OPTIONS]
    return {**sized, JAVA_OPTIONS: java.replace(LOGGING, as_json)}


def spark_session(
    name: str, settings: Mapping[str, str] | None = None, *, own: Mapping[str, str] | None = None
) -> SparkSession:
    """The session there is, or a new one. Spark's `settings` win over all others, `own` over OWN."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    home = java_home_here()
    if home:
        os.environ["JAVA_HOME"] = home
    sized = {} if SUBMITTED in os.environ else {**OWN, **(own or {})}
    chosen = {**SETTINGS, **sized, **(settings or {})}
    if chosen.get("spark.master", "").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # not reachable from outside
        chosen = {**_sockets(), **chosen}
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    interrupted = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)  # PySpark puts its own there
    return session


@contextmanager
def settings_within(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within, the session has these settings of Spark SQL."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


def _sockets() -> Mapping[str, str]:
    """Settings for Spark and its tasks in Python, which are on this machine, to talk over Unix sockets: over TCP each
    task ends with a wait of 40 ms, for an acknowledgement that is delayed."""
    folder = _folder_of_sockets()
    if len(os.fsencode(folder)) > FOLDER_LONGEST:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
    }


@cache
def _folder_of_sockets() -> str:
    """Return a folder that only this user can look into, gone with this process. Spark asks for no secret over such a
    socket, and leaves its file."""
    folder = tempfile.mkdtemp(prefix="mqpipeline-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
