"""Checks of a redis-namesrv's store: damaged tables, eviction, its clock, and how full it is."""

from collections.abc import Iterator
from typing import Final

from mqns.cli.doctor.facts import Facts, StoreFacts
from mqns.cli.doctor.findings import Finding, Severity, counted

RECENT_MS: Final = 24 * 3_600_000
WALK_LATE_MS: Final = 3 * 60_000
"""Walks begin every 25 s, and one over 10,000 topics of 30 brokers takes a minute."""
WALKS_LATE: Final = 3
"""How many times what the last walk took the next may take, where tables are larger."""
SECOND_MS: Final = 1_000
NEARLY_FULL: Final = 0.9
HOSTS_NAMED: Final = 3
KV_OPTION: Final = "maxKvNamespaces"
KV_ADVICE: Final = (
    "At the limit a new namespace is refused, but ORDER_TOPIC_CONFIG never is; what is there stays. Delete the keys of "
    "those that no client needs (GET /v1/kv lists all): an empty one gives its place to a new one. Or raise the option "
    "on all processes."
)
NAMES_ADVICE: Final = (
    "At the limit what is new is refused, also a broker that left and comes back; what is there stays. "
    "Unregister what is made up (docs/runbook.md), or raise the option on all processes."
)


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings at each name server."""
    for server in facts.reachable:
        if server.http is not None and server.http.failure is None:
            yield from _findings(server.address, server.http.now_ms, server.http.store)


def _findings(address: str, now_ms: int, store: StoreFacts) -> Iterator[Finding]:
    def finding(check: str, what: str, advice: str) -> Finding:
        return Finding(Severity.WARNING, check, what, (address,), (address,), advice)

    if store.repaired_rows and _recent(store.repaired_ms, now_ms):
        yield finding(
            "tables-damaged",
            f"tables of the store were damaged: {counted(store.repaired_rows, 'row')} repaired so far, the last "
            f"{_ago(store.repaired_ms, now_ms)}",
            "Something deletes or changes keys of the store: a person, a script, another program with the same keys, "
            "or a maxmemory-policy that evicts. See the warnings of the scheduler, and redis-cli CLIENT LIST.",
        )
    if store.repaired_rows is not None and _walk_is_late(store, now_ms):
        yield finding(
            "tables-not-compared",
            "no scheduler has compared the tables of the store for "
            f"{(now_ms - _compared_ms(store, now_ms)) // SECOND_MS} s",
            "Damaged tables stay so meanwhile. See whether a scheduler runs, and what it logs.",
        )
    if store.evicting_policy:
        yield finding(
            "store-evicts",
            f"the store evicts keys when its memory is short: maxmemory-policy is {store.evicting_policy}",
            "Routes vanish then. Set it to noeviction (redis-cli CONFIG SET, and the store's configuration file); "
            "registrations are refused then, and brokers repeat them.",
        )
    if _recent(store.clock_back_at_ms, now_ms):
        yield finding(
            "store-clock-back",
            f"the clock of the store went back by {(store.clock_back_ms or 0) / SECOND_MS:.1f} s, "
            f"{_ago(store.clock_back_at_ms, now_ms)}",
            "Let the machines of the store follow a time server (NTP) that slews the clock and does not set it: "
            "brokers that fell silent just before stay in routes for up to a minute longer.",
        )
    for limit in store.limits:
        if limit.used >= limit.most * NEARLY_FULL:
            full = f"{limit.used} of {limit.most} {limit.what} that {limit.option} allows"
            if limit.option == KV_OPTION:
                yield finding(
                    "namespace-full", f"{full}, ORDER_TOPIC_CONFIG among them if it is there", KV_ADVICE
                )
            else:
                yield finding("namespace-full", f"{full}{_most_of(store.hosts)}", NAMES_ADVICE)
    for host, count in store.hosts:
        if store.most_of_host is not None and count >= store.most_of_host * NEARLY_FULL:
            yield finding(
                "namespace-full",
                f"{count} brokers come from {host}, of {store.most_of_host} that maxPercentOfHost allows one host",
                "At the limit new brokers of that host are refused, others are not. Unregister what is made "
                "up (docs/runbook.md). If it is a balancer with PROXY headers, list it in proxyNetworks; else "
                "raise maxBrokers or maxPercentOfHost on all processes.",
            )


def _most_of(hosts: tuple[tuple[str, int], ...]) -> str:
    """Return where most brokers come from."""
    return (
        "; most brokers come from " + ", ".join(f"{host} ({count})" for host, count in hosts[:HOSTS_NAMED])
        if hosts
        else ""
    )


def _walk_is_late(store: StoreFacts, now_ms: int) -> bool:
    late_ms = max(WALK_LATE_MS, WALKS_LATE * (store.walk_took_ms or 0))
    return now_ms - _compared_ms(store, now_ms) > late_ms


def _compared_ms(store: StoreFacts, now_ms: int) -> int:
    """Return when tables were compared last, or the server began; what is ahead of the clock was noted before that went
    back."""
    noted = (store.walked_ms or 0, store.walking_ms or 0)
    return max([store.started_ms, *(at for at in noted if at < now_ms + WALK_LATE_MS)])


def _recent(at_ms: int | None, now_ms: int) -> bool:
    return at_ms is not None and now_ms - at_ms < RECENT_MS


def _ago(at_ms: int | None, now_ms: int) -> str:
    return f"{max(now_ms - (at_ms or 0), 0) // SECOND_MS} s ago"
