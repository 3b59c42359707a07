"""Checks of brokers: their names, ids, masters and leases."""

from collections.abc import Iterator
from typing import Final

from mqns.cli.doctor.facts import BrokerLease, Facts, NameServerFacts
from mqns.cli.doctor.findings import Finding, Severity, named
from mqns.names import MASTER_ID

CLOCK_MS: Final = 5_000
SECOND_MS: Final = 1_000
HELD: Final = "held"
OVERDUE: Final = "overdue"
HOLD: Final = "leases-held"
"""What a name server finds about itself while it holds leases."""


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings of all checks of brokers."""
    yield from _without_master(facts)
    yield from _without_address(facts)
    yield from _in_two_clusters(facts)
    yield from _under_two_names(facts)
    for server in facts.reachable:
        yield from _leases(server)
    yield from _unknown_leases(facts)


def masterless(server: NameServerFacts) -> set[str]:
    """Return the broker names with addresses but without a master at a name server."""
    table = server.info.broker_addr_table
    return {name for name, data in table.items() if data.broker_addrs and MASTER_ID not in data.broker_addrs}


def _without_master(facts: Facts) -> Iterator[Finding]:
    """Yield brokers without a master at all name servers; at some only, it is a difference."""
    for name in facts.broker_names():
        knowing = [server for server in facts.reachable if server.names_broker(name)]
        if knowing and all(name in masterless(server) for server in knowing):
            acting = any(server.info.broker_addr_table[name].enable_acting_master for server in knowing)
            harm = (
                "a slave acts for it, so messages are read"
                if acting
                else "its topics can be read, but not written"
            )
            yield Finding(
                Severity.WARNING if acting else Severity.ERROR,
                "broker-without-master",
                f"{name} has no master (id 0), only {named(_slaves(knowing, name))}: {harm}",
                tuple(server.address for server in knowing),
                (name,),
                "Start the master again, or see why it does not register; in a controller group see which "
                "broker was elected.",
            )


def _without_address(facts: Facts) -> Iterator[Finding]:
    for name in facts.broker_names():
        where = tuple(
            server.address
            for server in facts.reachable
            if name in server.info.broker_addr_table and not server.names_broker(name)
        )
        if where:
            yield Finding(
                Severity.WARNING,
                "broker-without-address",
                f"{name} is listed without any address",
                where,
                (name,),
                "See in its broker.log why it was refused; the name does no harm.",
            )


def _in_two_clusters(facts: Facts) -> Iterator[Finding]:
    listed_by: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for server in facts.reachable:
        for name in server.info.broker_addr_table:
            clusters = tuple(
                sorted(c for c, names in server.info.cluster_addr_table.items() if name in names)
            )
            if len(clusters) > 1:
                listed_by.setdefault((name, clusters), []).append(server.address)
    for (name, clusters), where in sorted(listed_by.items()):
        yield Finding(
            Severity.ERROR,
            "broker-in-two-clusters",
            f"{name} is listed by the clusters {' and '.join(clusters)}",
            tuple(where),
            (name,),
            "Rename the brokers of one cluster.",
        )


def _under_two_names(facts: Facts) -> Iterator[Finding]:
    identities_of: dict[str, set[tuple[str, int]]] = {}
    where: dict[str, list[str]] = {}
    for member in facts.members():
        identities_of.setdefault(member.address, set()).add((member.broker_name, member.broker_id))
        where.setdefault(member.address, []).extend(member.name_servers)
    for address, identities in sorted(identities_of.items()):
        if len(identities) > 1:
            names = " and ".join(f"{name} (id {number})" for name, number in sorted(identities))
            yield Finding(
                Severity.ERROR,
                "address-twice",
                f"{address} is registered by {names}",
                tuple(dict.fromkeys(where[address])),
                (address, *sorted({name for name, _ in identities})),
                "If it was renamed, wait for the end of the old registration (120 s); else correct brokerIP1 or "
                "listenPort.",
            )


def _leases(server: NameServerFacts) -> Iterator[Finding]:
    http = server.http
    if http is None or http.failure is not None:
        return
    holds = any(own.check == HOLD for own in http.findings)
    for lease in http.leases:
        title = f"{lease.broker_name} (id {lease.broker_id}, {lease.broker_addr})"
        subjects = (lease.broker_name, lease.broker_addr)
        why = _ending(lease)
        if why is not None and (lease.state == OVERDUE or not holds):  # a hold explains it
            severity, reason = why
            yield Finding(
                severity,
                "lease-ending",
                f"{title} {reason}",
                (server.address,),
                subjects,
                "See its broker.log, its pauses (GC), and registerNameServerPeriod "
                "(30 s; acting brokers send a heartbeat each second).",
            )
        ahead = lease.version_ms - http.now_ms
        if ahead > CLOCK_MS:
            yield Finding(
                Severity.WARNING,
                "broker-clock-ahead",
                f"{title} changed its topics {ahead / SECOND_MS:.0f} s in the future: its clock is ahead",
                (server.address,),
                subjects,
                "Let brokers and name servers follow the same time server (NTP).",
            )


def _ending(lease: BrokerLease) -> tuple[Severity, str] | None:
    """Return severity and text if more than half of a lease passed without a heartbeat."""
    if lease.state == OVERDUE:
        return Severity.ERROR, "has not registered in time: routes leave it out already"
    if lease.state == HELD:
        return (
            Severity.ERROR,
            "has not registered in time, and counts only because the store was away meanwhile",
        )
    if 2 * lease.remaining_ms < lease.timeout_ms:
        left, of = lease.remaining_ms / SECOND_MS, lease.timeout_ms / SECOND_MS
        return (
            Severity.WARNING,
            f"has {left:.0f} s left of its {of:.0f} s; its last heartbeat was {lease.age_ms / SECOND_MS:.0f} s ago",
        )
    return None


def _unknown_leases(facts: Facts) -> Iterator[Finding]:
    unasked = tuple(
        server.address for server in facts.reachable if server.http is None and not server.store_away
    )
    if unasked:
        yield Finding(
            Severity.INFO,
            "leases-not-told",
            "when brokers last registered is not reported on this port",
            unasked,
            unasked,
            "redis-namesrv reports it over HTTP: give --http URL. Java's name servers do not report it; a broker "
            "that has died is "
            "seen here only as unreachable, until its registration ends.",
        )
    for server in facts.reachable:
        http = server.http
        if http is None or http.failure is None or http.is_remoting or http.refused_kind or server.store_away:
            continue  # or the cause has a finding of its own
        if http.not_ready is None and http.port is None:
            yield Finding(
                Severity.INFO,
                "leases-not-told",
                f"when brokers last registered was not reported ({http.url}: {http.failure})",
                (server.address,),
                (server.address,),
                "See whether this is the HTTP side of a redis-namesrv (httpPort), and what it logs. Meanwhile a broker "
                "that has died is seen here only as unreachable, until its registration ends.",
            )


def _slaves(servers: list[NameServerFacts], name: str) -> list[str]:
    return sorted(
        {addr for server in servers for addr in server.info.broker_addr_table[name].broker_addrs.values()}
    )
