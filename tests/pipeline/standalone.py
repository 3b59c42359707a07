"""A Spark cluster of our own on this machine: a master and two workers, each a process of the pyspark wheel."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from pipeline.java import java_home

START_S = 120.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """-> spark://…, once all workers have joined. Each has one core and 1 GB."""
    port, page = _free_port(), _free_port()
    home = java_home(os.environ, folder)
    environment = {
        **os.environ,
        **({"JAVA_HOME": home} if home else {}),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    url = f"spark://127.0.0.1:{port}"
    commands = [
        [MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)],
        *(
            [WORKER, "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", url]
            for _ in range(workers)
        ),
    ]
    logs = [folder / f"spark-{number}.log" for number in range(len(commands))]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as output:
                started.append(
                    subprocess.Popen(
                        [SPARK_CLASS, *command], env=environment, stdout=output, stderr=subprocess.STDOUT
                    )
                )
        _await_workers(logs[0], workers)
        yield url
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _await_workers(log: Path, workers: int) -> None:
    late = time.monotonic() + START_S
    while log.read_text(errors="replace").count("Registering worker ") < workers:
        if time.monotonic() > late:
            raise AssertionError(
                f"{workers} workers did not join in {START_S} s:\n{log.read_text(errors='replace')}"
            )
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
