"""Write permission of a broker's topics: 205, 327."""

from collections.abc import Callable

from registry.keys import Keys
from registry.plans import Origin, Plan
from registry.queue_data.rewrite import Rewrite
from rocketmq_remoting.codes import RequestCode
from worker.dispatch import handles
from worker.handlers.drain_warning import warn_if_drained
from worker.reply import Handled, Reply, Request


@handles(RequestCode.WIPE_WRITE_PERM_OF_BROKER)
def wipe_write_perm_of_broker(request: Request) -> Handled:
    """Reply field `wipeTopicCount`: the broker's queue data, those without the write bit too."""
    return _rewritten(request, request.rewrites.wipe_write_perm, "wipeTopicCount")


@handles(RequestCode.ADD_WRITE_PERM_OF_BROKER)
def add_write_perm_of_broker(request: Request) -> Handled:
    """Reply field `addTopicCount`; perm becomes read and write whatever it was."""
    return _rewritten(request, request.rewrites.add_write_perm, "addTopicCount")


def _rewritten(
    request: Request, rewrite: Callable[[Keys, str, Origin], Plan[Rewrite]], counted_as: str
) -> Handled:
    name = request.get("brokerName")
    if name is None:
        return Reply(ext={counted_as: "0"})
    return _counted(request, name, rewrite(request.keys, name, request.origin), counted_as)


def _counted(request: Request, name: str, plan: Plan[Rewrite], counted_as: str) -> Plan[Reply]:
    done = yield from plan
    yield from warn_if_drained(request, (name,))
    return Reply(ext={counted_as: str(done.count)}, event_id=done.event_id)
