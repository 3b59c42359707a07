"""What a redis-namesrv finds about itself and its store, with its own texts."""

import re
from collections.abc import Iterator
from typing import Final

from mqns.cli.doctor.facts import Facts, OwnFinding
from mqns.cli.doctor.findings import Finding, Severity
from mqns.cli.shell import command_line

OF_ROUTES: Final = frozenset({"broker-without-master", "broker-wiped", "topic-not-writable"})
"""What `brokers` and `topics` see too, in routes: with the topics' names, and at several name servers."""
LEASE_ENDING: Final = "lease-ending"
"""What `brokers` sees too, each lease by itself."""
FOLLOWER_LATE: Final = "follower-late"
"""What `serving` sees too, of workers that do not read the stream."""
VARIABLE: Final = re.compile("('[^']*')|" + re.escape('"$MQNS_HTTP"'))
"""The HTTP side's URL in a command, and what is quoted, where it is no variable."""


def check(facts: Facts) -> Iterator[Finding]:
    """Yield the findings that name servers have about themselves, equal ones once.

    Where one HTTP side was given for several name servers, they are at that: of which it is the side is not known."""
    asked = [server.http.url for server in facts.name_servers if server.http is not None]
    where: dict[tuple[str, OwnFinding], list[str]] = {}
    for server in facts.reachable:
        if server.http is not None:
            for own in server.http.findings:
                seen_elsewhere = own.check == FOLLOWER_LATE and server.not_ready is not None
                seen_elsewhere |= own.check in OF_ROUTES and not server.only_http
                seen_elsewhere |= own.check == LEASE_ENDING
                if not seen_elsewhere:
                    where.setdefault((server.http.url, own), []).append(server.address)
    for (url, own), addresses in where.items():
        servers = (url,) if asked.count(url) > 1 else tuple(addresses)
        yield Finding(
            Severity(own.severity),
            own.check,
            own.what,
            servers,
            own.subjects or servers,
            own.advice,
            own.why,
            _with_url(own.command, command_line(url.rstrip("/"))),
        )


def _with_url(command: str, url: str) -> str:
    return VARIABLE.sub(lambda match: match[1] or url, command)
