"""Checks the name servers that clients learn from the HTTP side whose only setting that is (docs/http-api.md)."""

from collections.abc import Iterator

from mqns.cli.doctor.facts import Facts
from mqns.cli.doctor.findings import Finding, Severity, named


def check(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each HTTP side that lists addresses to which no connection is made from here."""
    for url, listed in facts.listed_name_servers().items():
        failures = {
            address: probe.failure
            for address in listed
            if (probe := facts.listed.get(address)) is not None and probe.failure is not None
        }
        if failures:
            texts = tuple(f"{address} ({failure})" for address, failure in failures.items())
            yield Finding(
                Severity.WARNING,
                "discovery-unreachable",
                f"{url}/rocketmq/nsaddr names addresses that do not answer here: {named(texts)}",
                tuple(
                    one.address for one in facts.name_servers if one.http is not None and one.http.url == url
                ),
                tuple(failures),
                "Set discoveryAddress, or advertiseAddress of the remoting workers, to what clients reach. Where no "
                "client asks the HTTP side for name servers, or clients are in another network than this machine, "
                "nothing.",
            )
