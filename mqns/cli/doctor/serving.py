"""Checks whether name servers serve: their store, their readiness, and requests that they refuse."""

from collections.abc import Iterator

from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity, named
from mqns.cli.doctor.http_side import NOT_FOLLOWED

STREAM, LEASES = "the event stream was not read", "leases were not watched"
"""What a worker says that is late with these."""


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings at each name server; a store that is away explains all others, and is one for all of them."""
    yield from _store_away(facts)
    for server in facts.reachable:
        if not server.store_away:
            yield from _not_ready(server)
            yield from _failed(server)
            yield from _not_compared(server)
    yield from _not_asked(facts)


def _store_away(facts: Facts) -> Iterator[Finding]:
    away = [server for server in facts.name_servers if server.store_away]
    if away:
        where = tuple(server.address for server in away)
        yield Finding(
            Severity.ERROR,
            "store-away",
            f"the store (Redis) is away: {'; '.join(dict.fromkeys(sign for s in away for sign in s.store_away))}",
            where,
            where,
            "Do not restart workers: they would lose their caches, which clients and brokers live on. Bring the store "
            'back: see "Redis" in docs/runbook.md, redis-kill where it has ended, redis-stop where it does not answer. '
            "Do not restart brokers either: nothing is to be repaired afterwards.",
        )


def _not_asked(facts: Facts) -> Iterator[Finding]:
    """Yield what was left out."""
    servers = [server for server in facts.reachable if server.not_asked]
    if servers:
        whats = dict.fromkeys(what for server in servers for what in server.not_asked)
        yield Finding(
            Severity.INFO,
            "not-asked",
            f"left out while the store is away: {', '.join(whats)}",
            tuple(server.address for server in servers),
            tuple(whats),
            "Run the doctor again when the store is back.",
        )
    if facts.unprobed:
        addresses = {server.address: server for server in facts.reachable}
        yield Finding(
            Severity.INFO,
            "not-asked",
            f"left out, since others took long: connections to {named(facts.unprobed)}",
            tuple(addresses),
            facts.unprobed,
            "Run the doctor with --no-connect, and see with nc whether these are reached.",
            why="Brokers that do not answer take 3 s each, and the doctor begins no connection after 6 s.",
        )


def _not_ready(server: NameServerFacts) -> Iterator[Finding]:
    reasons = [] if server.not_ready is None else [server.not_ready]
    if server.http is not None and server.http.not_ready is not None:
        reasons.append(f"{server.http.url}/readyz: {server.http.not_ready}")
    if reasons and _only_follows_late(server):
        yield Finding(
            Severity.ERROR,
            "follower-late",
            f"the event stream is not followed: {'; '.join(reasons)}",
            (server.address,),
            (server.address,),
            "See the line of the worker's log ('the event stream cannot be followed'), and \"Only the event stream "
            'cannot be read" in docs/runbook.md.',
        )
    elif reasons:
        yield Finding(
            Severity.ERROR,
            "not-ready",
            "; ".join(reasons),
            (server.address,),
            (server.address,),
            "See whether Redis is a replica (redis-cli role), full, slow or refuses (info memory, --latency, acl log), "
            "compare its user's rights with docs/redis.md, and see what the workers log. Behind Sentinel: is redisUrl "
            "redis+sentinel://, so that workers follow the master?",
        )


def _only_follows_late(server: NameServerFacts) -> bool:
    """Return whether leases are watched, by all that is known."""
    workers = server.not_ready is None or (STREAM in server.not_ready and LEASES not in server.not_ready)
    http = server.http is None or server.http.not_ready is None or server.http.not_ready_kind == NOT_FOLLOWED
    return workers and http


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
            "Clients and brokers are refused likewise. redis-namesrv: compare the rights of its user with "
            "docs/redis.md and its keys with docs/keys.md, and see what the workers log; Java's: see its namesrv.log.",
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
                "Ask with a user that may (--access-key), or leave it: what it refuses is not compared.",
            )
