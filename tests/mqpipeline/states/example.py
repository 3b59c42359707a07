"""The worked example as tables: an hour of three brokers and two topics; times in seconds from its beginning."""

from tests.mqpipeline.rows import Literal

W0 = 1_767_225_600_000
AS_OF = W0 + 3_600_000


def at(second: float) -> int:
    return W0 + round(second * 1000)


def session(broker: str, epoch: int, start: float, end: float | None, cause: str | None = None) -> Literal:
    """One of cluster c1, in slot 0."""
    return {
        "namespace": "n",
        "inc": 1,
        "cluster": "c1",
        "broker": broker,
        "broker_id": 0,
        "start_id": (at(start), 0),
        "epoch": epoch,
        "start_ms": at(start),
        "end_ms": None if end is None else at(end),
        "end_cause": cause,
        "drained": False,
        "open": end is None,
    }


def version(
    topic: str, broker: str, epoch: int, queues: int, perm: int, start: float, end: float | None
) -> Literal:
    """A queue datum with as many queues to read as to write."""
    return {
        "namespace": "n",
        "inc": 1,
        "topic": topic,
        "broker": broker,
        "from_id": (at(start), 1),
        "epoch": epoch,
        "read_queues": queues,
        "write_queues": queues,
        "perm": perm,
        "from_ms": at(start),
        "from_cause": "wipe" if perm == 4 else "register",
        "to_ms": None if end is None else at(end),
    }


SESSIONS = [
    session("a", 1, -900, 600, "lost"),
    session("a", 3, 660, 1920, "expired"),
    session("a", 6, 2400, None),
    session("b", 2, -900, 1200, "unregistered"),
    session("b", 4, 1500, None),
    session("c", 5, 1800, 3300, "expired"),
]
VERSIONS = [
    version("T1", "a", 1, 4, 6, -900, 660),
    version("T1", "a", 3, 4, 6, 660, 2400),
    version("T1", "a", 6, 4, 6, 2400, None),
    version("T1", "b", 2, 8, 6, -900, 1500),
    version("T1", "b", 4, 8, 6, 1500, 2700),
    version("T1", "b", 4, 8, 4, 2700, 3000),
    version("T1", "b", 4, 8, 6, 3000, None),
    version("T1", "c", 5, 12, 6, 1800, None),
    version("T2", "c", 5, 6, 6, 1800, None),
]
