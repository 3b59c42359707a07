"""Readiness of the worker that is asked, and whose service it is of: 19876, which only this server has."""

from msgspec.structs import replace

from rocketmq_remoting.codes import RequestCode
from worker.dispatch import failure, handles
from worker.reply import Reply, Request


@handles(RequestCode.CHECK_READINESS)
def check_readiness(request: Request) -> Reply:
    """A success while this worker follows the stream of events and watches the leases, else what of it is late.

    `startedMillis` is that of `/readyz`: all workers of a name server say the same; none before their first tick."""
    late, started_ms = request.late(), request.started_ms()
    ext = None if started_ms is None else {"startedMillis": str(started_ms)}
    return replace(failure(f"not ready: {late}") if late else Reply(), ext=ext)
