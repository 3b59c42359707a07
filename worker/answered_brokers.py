"""What brokers were answered: registrations and heartbeats are counted by what came of them, and a refused registration
is logged with its broker and the reason."""

import logging
from typing import Final

from metrics.registrations import REJECTED
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from worker.arguments import FIELD_SHOWN, shown
from worker.counters import REGISTRATION, Counters
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.reply import Reply

__all__ = ["OF_BROKERS", "AnsweredBrokers"]

OF_BROKERS: Final = frozenset(
    (REGISTRATION, int(RequestCode.QUERY_DATA_VERSION), int(RequestCode.BROKER_HEARTBEAT))
)
"""Requests that renew leases."""
CONFLICT: Final = "conflict"
REASONS: Final = {
    CONFLICT: "another address has its id with a higher stateVersion",
    "single-topic": "a first registration with one topic only",
}
"""Of refusals whose remark does not say it."""

log = RateLimitedLog(logging.getLogger(__name__))


class AnsweredBrokers:
    """Of one worker. What is answered by its bytes is counted where that is done."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._counts = counters.registrations

    def answered(self, reply: Reply, command: Command, peer: Peer) -> None:
        """Count the answer to one of OF_BROKERS; of a worker that ends (GO_AWAY) the broker asks another one."""
        if command.code != REGISTRATION:
            if reply.outcome:
                self._counts.heartbeats.add(command.code)
            return
        if reply.code == ResponseCode.GO_AWAY:
            return
        result = _result(reply)
        self._counts.results.add(result)
        self._counters.other_bodies.observe(len(command.body))
        if result in (REJECTED, CONFLICT):
            _log_refused(reply, command, peer)
        else:
            self._counts.heartbeats.add(REGISTRATION)

    def took(self, reply: Reply, seconds: float) -> None:
        """Count how long a registration took, from its whole frame to its answer."""
        self._counts.durations.of(_result(reply)).observe(seconds)


def _result(reply: Reply) -> str:
    return REJECTED if reply.code else reply.outcome


def _log_refused(reply: Reply, command: Command, peer: Peer) -> None:
    kind = reply.refusal or reply.outcome
    name, address, cluster = (
        shown(command.get(field))[:FIELD_SHOWN] for field in ("brokerName", "brokerAddr", "clusterName")
    )
    log.warning(
        "the registration of broker %s at %s in cluster %s, which came from %s, was refused, and what was there stays: "
        "%s; the broker repeats it, see Registrations are refused in docs/runbook.md",
        name,
        address,
        cluster,
        peer.address,
        REASONS.get(kind) or reply.remark,
        kind=kind,
    )
