"""Checks whether name servers serve: requests that they refuse, and readiness of a redis-namesrv."""

from collections.abc import Iterator

from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings at each name server."""
    for server in facts.reachable:
        yield from _not_ready(server)
        yield from _failed(server)
        yield from _not_compared(server)


def _not_ready(server: NameServerFacts) -> Iterator[Finding]:
    reasons = [] if server.not_ready is None else [server.not_ready]
    if server.http is not None and server.http.not_ready is not None:
        reasons.append(f"{server.http.url}/readyz: {server.http.not_ready}")
    if reasons:
        yield Finding(
            Severity.ERROR,
            "not-ready",
            "; ".join(reasons),
            (server.address,),
            (server.address,),
            "Routes may be out of date, and registrations not acknowledged. See whether Redis serves (redis-cli ping), "
            "whether its user has the rights of docs/redis.md, whether the service's keys are as in docs/keys.md, and "
            "what the workers log.",
        )


def _failed(server: NameServerFacts) -> Iterator[Finding]:
    """Yield one finding for all requests that it could not answer: they have one cause."""
    whats_of: dict[str, list[str]] = {}
    for what, refusal in sorted(server.refusals.items()):
        if refusal.failed:
            whats_of.setdefault(refusal.remark, []).append(what)
    texts = [f"{', '.join(whats)}: refused ({remark})" for remark, whats in whats_of.items()]
    subjects = [what for whats in whats_of.values() for what in whats]
    if server.http is not None and server.http.refused is not None:
        texts.append(f"{server.http.url}: {server.http.refused}")
        subjects.append(server.http.url)
    if texts:
        yield Finding(
            Severity.ERROR,
            "requests-refused",
            "; ".join(texts),
            (server.address,),
            tuple(subjects),
            "Clients and brokers are refused likewise. redis-namesrv: see whether Redis serves (redis-cli ping), "
            "whether its user has the rights of docs/redis.md, and what the workers log; Java's: see its namesrv.log.",
        )


def _not_compared(server: NameServerFacts) -> Iterator[Finding]:
    for what, refusal in sorted(server.refusals.items()):
        if not refusal.failed:
            yield Finding(
                Severity.INFO,
                "not-compared",
                f"{what}: refused ({refusal.remark})",
                (server.address,),
                (what,),
                "What it refuses cannot be compared.",
            )
