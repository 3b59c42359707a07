"""Brokers in processes of their own, as the judging process controls them."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import msgspec

from faults.notes import Note, Spec, Tls
from faults.truth import Truth
from mqns.broker import BrokerConfig, TopicSettings
from rocketmq_remoting.typed import decoded
from testbed.eventually import eventually

PERIOD_MS = 10_000
"""The shortest period of registrations that a broker accepts; its default is three times as long."""
IN_A_CLUSTER, TOPICS, PASSING = 10, 5, 4
JOINED_WITHIN_S = 45.0


class Process:
    """A process of brokers; its notes are added to `notes` and `truth`."""

    def __init__(self, spec: Spec, truth: Truth, notes: list[Note]) -> None:
        self._spec, self._truth, self._notes = spec, truth, notes
        self.names = [config.broker_name for config in spec.steady]
        self.start()

    def start(self) -> None:
        """Start it, again if it was killed."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.broker_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(self._spec) + b"\n")
        self._process.stdin.flush()  # and left open: its end is theirs
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """Send SIGKILL: connections are closed, ports are refused, no broker unregisters."""
        ended, begun = self._process.poll(), time.monotonic()
        self._process.kill()
        self._process.wait()
        self._reader.join()  # its earlier notes come first
        self._truth.killed(self.names, begun, time.monotonic())
        assert ended is None, f"a process of brokers ended by itself: {ended}"

    def stop(self) -> None:
        """Send SIGSTOP: connections stay, and nothing comes any more."""
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)  # its earlier notes come first
        self._truth.silenced(self.names, time.monotonic())

    def go_on(self) -> None:
        """Send SIGCONT."""
        self._truth.awake(self.names, time.monotonic())
        self._process.send_signal(signal.SIGCONT)

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            note = decoded(line, Note)
            self._notes.append(note)
            self._truth.note(note)


class Fleet:
    """Steady brokers in so many processes, and some that come and go; a context that ends them all.

    `serving` is topic -> brokers that announce it, as name -> address; `changing` are topics of those that come and
    go."""

    def __init__(
        self, name_servers: str, truth: Truth, *, brokers: int, processes: int, tls: Tls | None = None
    ) -> None:
        self.notes: list[Note] = []
        self.truth = truth
        self.steady = list(_steady(brokers, name_servers))
        passing = tuple(_passing(name_servers))
        self.serving: dict[str, dict[str, str]] = {}
        for config in (*self.steady, *passing):
            for topic in config.topics:
                self.serving.setdefault(topic.topic_name, {})[config.broker_name] = config.broker_addr
        self.changing = {topic.topic_name for config in passing for topic in config.topics}
        self.processes: list[Process] = []
        self._specs = [Spec(tuple(self.steady[at::processes]), tls=tls) for at in range(processes)]
        self._specs.append(Spec(passing=passing, tls=tls))

    def __enter__(self) -> Self:
        self.processes = [Process(spec, self.truth, self.notes) for spec in self._specs]
        try:
            eventually(lambda: self.away() == set(), JOINED_WITHIN_S)
        except AssertionError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()

    def away(self, since: float = float("-inf")) -> set[str]:
        """Return the steady brokers of which no registration was accepted after `since`."""
        back = {note.broker for note in tuple(self.notes) if note.kind == "registered" and note.at > since}
        return {config.broker_name for config in self.steady} - back


def _steady(brokers: int, name_servers: str) -> Iterator[BrokerConfig]:
    net = _free_net()
    for number in range(brokers):
        cluster = f"fleet-{number // IN_A_CLUSTER:02d}"
        topics = [f"{cluster}-topic-{n}" for n in range(TOPICS)]
        yield _broker(f"broker-{number:03d}", cluster, f"{net}.{1 + number}", topics, name_servers)


def _passing(name_servers: str) -> Iterator[BrokerConfig]:
    """Each has a topic of its own, and one that steady brokers have too."""
    net = _free_net()
    for number in range(PASSING):
        topics = [f"passing-topic-{number}", "fleet-00-topic-0"]
        yield _broker(f"passing-{number}", "fleet-00", f"{net}.{1 + number}", topics, name_servers)


def _broker(name: str, cluster: str, ip: str, topics: Sequence[str], name_servers: str) -> BrokerConfig:
    return BrokerConfig(
        broker_name=name,
        broker_cluster_name=cluster,
        broker_ip1=ip,
        bind_address=ip,
        listen=True,
        namesrv_addr=name_servers,
        register_name_server_period=PERIOD_MS,
        refresh_cluster_info=False,
        starting_topics=False,
        topics=tuple(TopicSettings(topic_name=topic) for topic in topics),
    )


def _free_net() -> str:
    """Return the first three numbers of loopback addresses that are hardly in use."""
    return f"127.{random.randrange(64, 250)}.{random.randrange(250)}"
