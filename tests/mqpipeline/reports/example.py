"""The worked example of the definitions as the tables tell it: seconds from its window's begin, [0, 3600)."""

from tests.mqpipeline.reports.literal import Log, broker_version, session, state, version, window

AS_OF = 3_600_000
WINDOW = window(0, 3600)
FOUR, EIGHT, READ_ONLY, TWELVE, SIX = "4,4,6,0", "8,8,6,0", "8,8,4,0", "12,12,6,0", "6,6,6,0"


def _events() -> Log:
    log = Log()

    def first(at: float, broker: str, *rows: tuple[str, str]) -> None:
        log.member("registered", "first", at, broker, op=f"first {at} {broker}")
        listed = [(broker, "", data, [topic]) for topic, data in rows]
        log.topics("register", at, *listed, op=f"first {at} {broker}")

    first(-900, "a", ("T1", FOUR))
    first(-900, "b", ("T1", EIGHT))
    log.member("removed", "lost", 600, "a", topics=1)
    first(660, "a", ("T1", FOUR))
    log.member("removed", "unregistered", 1200, "b", topics=1)
    first(1500, "b", ("T1", EIGHT))
    first(1800, "c", ("T1", TWELVE), ("T2", SIX))
    log.member("removed", "expired", 1923.4, "a", topics=1, effective_ms=1_920_000)
    first(2400, "a", ("T1", FOUR))
    log.topics("wipe", 2700, ("b", EIGHT, READ_ONLY, ["T1"]), actor="token:alice")
    log.topics("restore", 3000, ("b", READ_ONLY, EIGHT, ["T1"]), actor="token:alice")
    return log.member("removed", "expired", 3301.2, "c", topics=2, effective_ms=3_300_000)


EVENTS = _events().rows
SESSIONS = [
    session("a", -900, 600, "lost", epoch=1, closed=599.8, last_seen=585),
    session("a", 660, 1920, "expired", epoch=3, recorded=1923.4, last_seen=1800),
    session("a", 2400, epoch=6),
    session("b", -900, 1200, "unregistered", epoch=2, last_seen=1190),
    session("b", 1500, epoch=4),
    session("c", 1800, 3300, "expired", epoch=5, recorded=3301.2, last_seen=3180),
]
BROKER_VERSIONS = [
    broker_version("a", -900, 660, epoch=1),
    broker_version("a", 660, 2400, epoch=3),
    broker_version("a", 2400, epoch=6),
    broker_version("b", -900, 1500, epoch=2),
    broker_version("b", 1500, epoch=4),
    broker_version("c", 1800, epoch=5),
]
ROUTE_VERSIONS = [
    version("T1", "a", FOUR, -900, 660, epoch=1),
    version("T1", "a", FOUR, 660, 2400, epoch=3),
    version("T1", "a", FOUR, 2400, epoch=6),
    version("T1", "b", EIGHT, -900, 1500, epoch=2),
    version("T1", "b", EIGHT, 1500, 2700, epoch=4),
    version("T1", "b", READ_ONLY, 2700, 3000, epoch=4),
    version("T1", "b", EIGHT, 3000, epoch=4),
    version("T1", "c", TWELVE, 1800, epoch=5),
    version("T2", "c", SIX, 1800, epoch=5),
]
STATES = [
    state("a", "UP", -900, 600),
    state("a", "DOWN", 600, 660),
    state("a", "UP", 660, 1920),
    state("a", "DOWN", 1920, 2400),
    state("a", "UP", 2400, 3600),
    state("b", "UP", -900, 1200),
    state("b", "PLANNED", 1200, 1500),
    state("b", "UP", 1500, 3600),
    state("c", "UP", 1800, 3300),
    state("c", "DOWN", 3300, 3600),
]
