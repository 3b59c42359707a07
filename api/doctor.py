"""Findings of the name server about itself."""

from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from apiflask import APIBlueprint
from flask import current_app

from api.guard import guard
from api.name_server import NameServer, name_server
from api.name_server_lists import name_server_lists
from api.shapes import Answer
from registry.doctor.catalogue import Severity
from registry.doctor.findings import Examination, examine
from registry.members import lease_clock

bp = APIBlueprint("doctor", __name__, url_prefix="/v1/doctor")
EXTENSION: Final = "doctor"
"""The last examination of the application's name server."""
FEW: Final = 100
"""Members and drains of which each request is answered by a new one."""
KEPT_FOR_EACH_S: Final = 0.002
"""About ten times what reading one takes this process and Redis together."""


class _Made(NamedTuple):
    """An examination, until when it is answered, and until when it is while another is being made."""

    examined: Examination
    until_s: float
    late_s: float


class LastExamination:
    """The last examination that this process made. All brokers are read for it, and any caller may ask: so one of many
    brokers is answered for about ten times as long as it took, and one thread at a time makes it. The others answer the
    one before meanwhile, for as long again, so that they do not all wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: _Made | None = None

    def or_new(self, server: NameServer) -> Examination:
        """Return it, or a new one once it is over. Raises StoreUnavailable at once while the store is away."""
        server.run(lease_clock(server.keys))
        last = self._last
        if last is not None and monotonic() < last.late_s and self._lock.locked():
            return last.examined
        with self._lock:
            last = self._last
            if last is None or monotonic() >= last.until_s:
                refused, listed = guard().access_file_refused(), name_server_lists().unusable()
                examined = server.run(examine(server.keys, server.limits, refused, listed))
                now_s, kept = monotonic(), kept_s(examined.size)
                last = self._last = _Made(examined, now_s + kept, now_s + 2 * kept)
            return last.examined


def kept_s(size: int) -> float:
    """Return for how long (s) an examination of so many members and drains is answered."""
    return KEPT_FOR_EACH_S * size if size > FEW else 0.0


class FindingAnswer(Answer):
    """`check` names the finding; what one sees, why, what to do, and a command for a shell, which has the HTTP side's
    URL in `$MQNS_HTTP` and that of Redis in `$REDIS_URL`. `subjects` are the first hundred of `count` brokers,
    clusters, options, jobs or consumers; none if it is about the store."""

    check: str
    severity: Severity
    what: str
    why: str
    advice: str
    command: str
    subjects: tuple[str, ...]
    count: int


class Findings(Answer):
    """`nowMillis` is the time by the Redis clock."""

    now_millis: int
    findings: list[FindingAnswer]


@bp.get("")
@bp.output(Findings)
@bp.doc(operation_id="listFindings")
def doctor() -> Findings:
    """What an operator should know

    As the store, and the access file of the process that answers, show it now; of over a hundred brokers as it was
    `nowMillis`, 4 ms ago at most for each of them.
    `mqns doctor --http` has these findings, and those that only clients see: ports, addresses, name servers that
    differ."""
    last: LastExamination = current_app.extensions.setdefault(EXTENSION, LastExamination())
    examined = last.or_new(name_server())
    return Findings(
        now_millis=examined.now_ms,
        findings=[FindingAnswer(**msgspec.structs.asdict(finding)) for finding in examined.findings],
    )
