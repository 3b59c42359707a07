"""What each kind of work costs a name server: measured by bench/model.py, and what `mqnamesrv size` reckons with."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from rocketmq_remoting.typed import decoded

FILE: Final = Path(__file__).with_name("costs.json")


class Line(Struct, frozen=True):
    """A cost at some sizes, as (size, cost), and the line through them: `fixed` and so much for `each` unit of size."""

    fixed: float
    each: float
    points: tuple[tuple[float, float], ...]

    def at(self, size: float) -> float:
        """Return the cost at a size by the line."""
        return self.fixed + self.each * size


class Cpu(Struct, frozen=True):
    """CPU time in µs: of remoting workers, of the store, and of all processes beside them (scheduler, jobs, HTTP)."""

    worker: Line
    store: Line
    beside: Line


class Conditions(Struct, frozen=True):
    """Where and with what the costs were measured; `measured` is a date."""

    machine: str
    versions: str
    measured: str


class Costs(Struct, frozen=True):
    """CPU of one request in µs, but for what is said to be a second's; memory and network in bytes.

    By topics of the broker's table: `first` (a first registration), `change` (a whole registration with one topic
    changed), `unchanged` (one that changes nothing, and is written), `registration_bytes` on the wire; `event_bytes`
    and `events` (memory of the stream for a change, its entries).
    By requests a second, µs of a second: `heartbeat` (904), `version_query` (322).
    By brokers of the route: `lookup` (105 from the cache), `missed` (105 that reads the store), `route_bytes` on the
    wire, `topic_store` and `topic_worker` (of a topic and its pairs in the store, and in a worker that was asked).
    By brokers registered: `cluster_info` (106), `cluster_info_bytes` on the wire, `broker_store` (of all in the store).
    By workers, of all of them together: `following` (µs for a change), `resting` (µs of a second without requests).
    By pairs of topic and broker, µs of a second: `idle`.
    By open connections, of all together: `connection_worker` (a worker's memory), `connection_kernel` (of this side).
    By entries, CPU seconds: `landing` (the pipeline's).
    `beside_bytes` is the resident memory of all processes that are neither worker nor store."""

    conditions: Conditions
    first: Cpu
    change: Cpu
    unchanged: Cpu
    registration_bytes: Line
    heartbeat: Cpu
    version_query: Cpu
    lookup: Cpu
    missed: Cpu
    route_bytes: Line
    topic_store: Line
    topic_worker: Line
    cluster_info: Cpu
    cluster_info_bytes: Line
    broker_store: Line
    following: Cpu
    resting: Cpu
    idle: Cpu
    connection_worker: Line
    connection_kernel: Line
    event_bytes: Line
    events: Line
    beside_bytes: float
    landing: Line


def measured() -> Costs:
    """Return the costs that this release was measured with."""
    return decoded(FILE.read_bytes(), Costs)
