"""What runs of Spark take: time, processor and memory."""

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.servers import Server


class Clock:
    """Seconds that went by, and seconds of processor that Spark's Java process and its Python workers took."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._process = Path(f"/proc/{gateway.proc.pid}")
        self._all = Server("spark", 0, gateway.proc.pid)
        self._began, self._used = self._now()

    @property
    def peak_mb(self) -> int:
        """Return the largest memory (MB) that the Java process has held."""
        words = self._process.joinpath("status").read_text().partition("VmHWM:")[2].split()
        return int(words[0]) >> 10

    def print_step(self, what: str) -> None:
        """Print the times since the last call, and the most memory so far."""
        began, before = self._began, self._used
        self._began, self._used = self._now()
        used = sum(seconds - before.get(pid, 0) for pid, seconds in self._used.items())
        times = f"{self._began - began:7.2f} s {used:7.2f} CPU-s"
        print(f"{what:44} {times} {self.peak_mb:9} MB", flush=True)

    def _now(self) -> tuple[float, dict[int, float]]:
        return time.monotonic(), self._all.cpu_seconds_by_process()
