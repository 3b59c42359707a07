"""Readiness of the worker that is asked: 19876, which only this server has."""

from rocketmq_remoting.codes import RequestCode
from worker.dispatch import failure, handles
from worker.reply import Reply, Request


@handles(RequestCode.CHECK_READINESS)
def check_readiness(request: Request) -> Reply:
    """A success while this worker follows the stream of events and watches the leases, else what of it is late."""
    late = request.late()
    return failure(f"not ready: {late}") if late else Reply()
