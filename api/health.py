"""Liveness of this process and readiness of the name server."""

from apiflask import APIBlueprint

from api.guard import guard
from api.name_server import name_server
from api.problems import Problem
from api.shapes import Answer
from registry.members import LeaseClock, lease_clock

bp = APIBlueprint("health", __name__)


class Alive(Answer):
    status: str


class Ready(Answer):
    """Times are Unix ms of the Redis clock: now, the last renewal of the workers' clock, when a worker last followed
    the stream of events, the service's start, until when leases are held (that could not be renewed, or many of which
    ended at once), and when this clock went back last, by how many ms. `behindMillis` is by how much what a worker has
    applied of the stream is behind its end, of the worker of which that is most; null where none says so. `insecure` is
    true where any caller, also from another machine, may do what operators do (docs/access.md)."""

    status: str
    now_millis: int
    tick_millis: int
    follow_millis: int | None
    behind_millis: int | None
    started_millis: int
    hold_until_millis: int | None
    clock_back_millis: int | None
    clock_back_at_millis: int | None
    insecure: bool


@bp.get("/healthz")
@bp.output(Alive)
@bp.doc(operation_id="getLiveness")
def healthz() -> Alive:
    """This process answers

    The store is not asked: restarting this process would not bring it back."""
    return Alive(status="alive")


@bp.get("/readyz")
@bp.output(Ready)
@bp.doc(
    operation_id="getReadiness",
    responses={503: "The store does not answer, or no worker renews leases or follows the stream of events"},
)
def readyz() -> Ready:
    """The name server can answer

    The store is reached within half a second, and in the last 5 s a remoting worker renewed the lease clock and
    followed the stream of events. How far workers are behind that stream (`behindMillis`) takes none out of service:
    all of them have the same entries to apply, and one that is 5 s behind asks the store."""
    server = name_server()
    clock = server.run_probe(lease_clock(server.keys))
    if clock.tick_ms is None or clock.started_ms is None or clock.late:
        raise Problem(503, "lease-clock-late", _why(clock))
    if clock.unfollowed:
        raise Problem(503, "events-not-followed", "no remoting worker follows the stream of events")
    hold_until_ms = (
        clock.hold_until_ms if clock.hold_until_ms and clock.hold_until_ms > clock.now_ms else None
    )
    return Ready(
        status="ready",
        now_millis=clock.now_ms,
        tick_millis=clock.tick_ms,
        follow_millis=clock.follow_ms,
        behind_millis=clock.behind_now_ms,
        started_millis=clock.started_ms,
        hold_until_millis=hold_until_ms,
        clock_back_millis=clock.back_ms,
        clock_back_at_millis=clock.back_at_ms,
        insecure=guard().is_insecure,
    )


def _why(clock: LeaseClock) -> str:
    if clock.tick_ms is None:
        return "no remoting worker has ever run here"
    return f"no remoting worker has watched the leases for {clock.now_ms - clock.tick_ms} ms"
