"""A server with some brokers, and what a load of it costs by process: the parts of bench/model.py measure in these."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from bench.asking import Asking
from bench.closed_loop import write_frames
from bench.fitted import fitted
from bench.generator import Load, Stream
from bench.servers import ROLES, Server, this_server
from bench.setting import Setting
from bench.workloads import Workload, lookup, registration, topic_table
from mqnamesrv.costs import Cpu
from registry.keys import Keys
from testbed.ports import free_port

CALM_S = 2.0  # after brokers came: counts, walks and lazy frees of the store
ASIDE, BROKER_ASIDE = "aside_000000", 19_999
"""A topic of its own, which the lookups beside a load ask for."""
ASIDE_REGISTERED = registration(BROKER_ASIDE, topic_table(2, "aside"))
LOOKUPS_ASIDE, CONNECTIONS_ASIDE = 4_000, 50
US = 1e6
Used = Mapping[str, float]
"""By role of processes."""


class Stage(Struct, frozen=True):
    """A running server and a connection that its brokers registered over; `first` is the CPU (µs) of each of these
    registrations."""

    server: Server
    asking: Asking
    first: Used
    setting: Setting

    def store_bytes(self) -> int:
        """Return the memory that the store uses without the event stream."""
        with self.server.store() as store:
            return int(store.info("memory")["used_memory"]) - self.event_bytes()

    def event_bytes(self) -> int:
        """Return the memory of the event stream."""
        with self.server.store() as store:
            return int(store.memory_usage(Keys().events, samples=0) or 0)

    def events(self) -> int:
        """Return the number of entries of the event stream."""
        with self.server.store() as store:
            return int(store.xlen(Keys().events))

    def idle(self) -> Used:
        """Return the CPU of a second without requests (µs)."""
        seconds = self.setting.seconds * self.setting.rounds
        return self._used(lambda: time.sleep(seconds), seconds)

    def cost(self, frames: Callable[[], Iterable[bytes]], per_second: float, connections: int) -> Used:
        """Return the CPU of each of these requests (µs), beside lookups that a worker of a sized service has.

        It is what a run with the requests takes more than the run without them just before: the median of some rounds,
        since what lookups take on a virtual machine changes from one moment to the next."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            background = folder / "background"
            background.write_bytes(lookup(ASIDE))
            file = write_frames(Workload("", 0, connections, frames), folder)
            streams = [Stream(CONNECTIONS_ASIDE, background), Stream(connections, file)]
            with Load(self.setting.program("load"), self.server.port, streams) as load:
                both = (f"0=open:{LOOKUPS_ASIDE}", f"1=open:{per_second}")
                load.run(self.setting.warm_up_s, *both)
                pairs = [
                    (self._loaded(load, both[:1]), self._loaded(load, both))
                    for _ in range(self.setting.rounds)
                ]
        more = {
            role: statistics.median(used[role] - without[role] for without, used in pairs) for role in ROLES
        }
        return {role: max(used, 0.0) / per_second for role, used in more.items()}

    def _loaded(self, load: Load, modes: Sequence[str]) -> Used:
        """Return the CPU of a second of this load (µs)."""
        seconds = self.setting.seconds
        self.asking.ask(ASIDE_REGISTERED)  # its lease, and this connection, may have come near their ends

        def run() -> None:
            for sample in load.run(seconds, *modes):
                if sample.errors or sample.lost:
                    raise RuntimeError(f"{modes}: {sample.errors} errors, {sample.lost} lost")

        return self._used(run, seconds)

    def _used(self, work: Callable[[], None], seconds: float) -> Used:
        """Return the CPU that `work` takes in each of so many seconds (µs)."""
        before = self.server.cpu_seconds_by_role()
        work()
        after = self.server.cpu_seconds_by_role()
        return {role: (after[role] - before[role]) / seconds * US for role in ROLES}


@contextmanager
def stage(
    setting: Setting,
    brokers: Iterable[bytes],
    *,
    workers: int = 1,
    options: Mapping[str, str] | None = None,
) -> Iterator[Stage]:
    """A server at which these registrations have succeeded."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        core = setting.server_core
        server = stack.enter_context(
            this_server(free_port(), folder, core=core, workers=workers, options=options)
        )
        asking = stack.enter_context(Asking(server.port))
        frames = list(brokers)
        asking.ask(ASIDE_REGISTERED)
        before = server.cpu_seconds_by_role()
        asking.ask_all(frames)
        after = server.cpu_seconds_by_role()
        first = {role: (after[role] - before[role]) / max(len(frames), 1) * US for role in ROLES}
        time.sleep(CALM_S)
        yield Stage(server, asking, first, setting)


def cpu(points: Sequence[tuple[float, Used]]) -> Cpu:
    """Return the lines through costs by role at some sizes."""
    worker, store, beside = (fitted([(size, used[role]) for size, used in points]) for role in ROLES)
    return Cpu(worker, store, beside)


def each_second(per_second: float, used: Used) -> Used:
    """Return the cost of a second in which so many requests come."""
    return {role: cost * per_second for role, cost in used.items()}
