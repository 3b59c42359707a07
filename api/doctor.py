"""Findings of the name server about itself."""

import msgspec
from apiflask import APIBlueprint

from api.name_server import name_server
from api.shapes import Answer
from registry.doctor.catalogue import Severity
from registry.doctor.findings import examine

bp = APIBlueprint("doctor", __name__, url_prefix="/v1/doctor")


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

    As the store shows it now. `mqns doctor --http` has these findings, and those that only clients see: ports,
    addresses, name servers that differ."""
    server = name_server()
    now_ms, findings = server.run(examine(server.keys, server.limits))
    return Findings(
        now_millis=now_ms,
        findings=[FindingAnswer(**msgspec.structs.asdict(finding)) for finding in findings],
    )
