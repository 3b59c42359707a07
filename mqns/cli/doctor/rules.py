"""The catalogue of findings that need a view from outside: why each comes about, and the command that shows more.

What one sees and what to do are written by the check, which knows the facts. What a redis-namesrv finds about itself
comes with all four."""

from collections.abc import Iterable
from typing import Final

import msgspec

from mqns.cli.doctor.facts import Facts
from mqns.cli.doctor.findings import Finding
from mqns.cli.http_api import name_in_path
from mqns.cli.shell import arguments, command_line

HTTP_UNKNOWN: Final = "http://HOST:8080"
"""Stands for the HTTP side in a command where --http was not given."""
REDIS: Final = 'redis-cli -u "$REDIS_URL"'


class Rule(msgspec.Struct, frozen=True):
    """`command` is a template of `command_of`; `why` is empty where the check itself says it."""

    why: str
    command: str


RULES: Final = {
    # whether it can be asked
    "name-server-silent": Rule("", "mqns ping {server} --count 1"),
    "port-is-http": Rule(
        "RocketMQ's protocol and HTTP have a port each: remoting is usually 9876, HTTP 8080.",
        "mqns doctor {host}:9876 --http http://{server}",
    ),
    "port-is-remoting": Rule(
        "RocketMQ's protocol and HTTP have a port each: remoting is usually 9876, HTTP 8080.",
        "mqns doctor {server} --http http://{host}:8080",
    ),
    "http-silent": Rule("", "curl -sm 5 {http}/readyz"),
    "http-denied": Rule(
        "The rules of access admit only callers with a token, or from other networks, to what operators read.",
        "mqns whoami --http {http}",
    ),
    # whether it serves
    "store-away": Rule(
        "Redis has ended, hangs, answers late, cannot be reached, or is loading or failing over. Clients and brokers "
        "live on cached routes meanwhile; registrations are refused, which brokers repeat, and leases that end are "
        "held for 60 s after Redis is back.",
        f"{REDIS} ping",
    ),
    "not-asked": Rule(
        "Each of these requests would wait for the store and fail as the first one did.",
        "mqns -n {servers} doctor{http_option}",
    ),
    "follower-late": Rule(
        "The user of the store lacks the right to XREAD, its key of events has another type, a proxy ends reads that "
        "wait, or the worker stands still. After 5 s lookups ask the store, and changes are acknowledged unfollowed.",
        f"{REDIS} type 'ns:{{{{default}}}}:events'",
    ),
    "not-ready": Rule(
        "The store answers but takes no writes (it is a replica, as after a failover that redisUrl does not follow, it "
        "is full, or a right is missing), answers late, or a worker stands still: routes may be out of date, and "
        "registrations not acknowledged.",
        f"{REDIS} info",
    ),
    "requests-refused": Rule(
        "The store refuses (a right is missing, a key has another type), or the name server is overloaded: the remark "
        "has the cause.",
        f"{REDIS} acl log",
    ),
    "not-compared": Rule(
        "An option switched the request off, this user may not make it, or the release does not know it.",
        "mqns -n {server} config get",
    ),
    # name servers
    "name-server-slow": Rule(
        "Its machine or the network is busy: this request needs no store.", "mqns ping {server}"
    ),
    "name-server-versions": Rule(
        "An update goes on, or ended before all of them had it: requests that one release knows and another does not "
        "(acting masters, 217, 327, 901, 904) succeed by chance.",
        "mqns -n {servers} doctor --no-routes --no-connect",
    ),
    "name-server-options": Rule(
        "The option was set at some of them only, so clients get other replies at one than at another.",
        "mqns -n {servers} config get {subject}",
    ),
    "option-harmful": Rule(
        "It was switched on, in a file or by a request.", "mqns -n {servers} config get {subject}"
    ),
    "clock-skew": Rule(
        "One of the two machines does not follow a time server: times in logs, events and data versions cannot be "
        "compared.",
        f"{REDIS} time",
    ),
    # differences
    "broker-missing": Rule(
        "Its namesrvAddr does not name all of these, or its machine does not reach them.",
        "mqns -n {server} brokers",
    ),
    "broker-conflict": Rule(
        "Two brokers with one name and id take each other's place, or one has moved.",
        "mqns -n {server} brokers",
    ),
    "broker-cluster-differs": Rule(
        "The first cluster that a name was registered with stays.", "mqns -n {server} brokers"
    ),
    "topic-missing": Rule(
        "A broker reports its topics with each registration (30 s) that name servers of 5.x take, to those of 4.x only "
        "when its topics change.",
        "mqns -n {server} routes {subject}",
    ),
    "queues-missing": Rule(
        "The broker's last registration with its topics did not get there.",
        "mqns -n {server} routes {subject}",
    ),
    "queues-differ": Rule(
        "They were changed at some name servers only, or a registration did not get to all of them.",
        "mqns -n {server} routes {subject}",
    ),
    "kv-differs": Rule("It was set in some of them only.", "mqns -n {server} kv list {namespace}"),
    # addresses
    "address-invalid": Rule(
        "brokerIP1 or listenPort of the broker is no address.", "mqns -n {server} brokers"
    ),
    "address-unresolved": Rule(
        "brokerIP1 is a name that DNS here does not know.", "getent hosts {address_host}"
    ),
    "address-unspecified": Rule(
        "brokerIP1 is the address that the broker listens at.", "mqns -n {server} brokers"
    ),
    "address-loopback": Rule(
        "brokerIP1 is such an address, or is not set and the broker took the first address of its machine.",
        "mqns -n {server} brokers",
    ),
    "address-link-local": Rule(
        "brokerIP1 is not set, and the broker took an address that its machine gave itself.",
        "mqns -n {server} brokers",
    ),
    "address-container": Rule(
        "The broker runs in a container, and brokerIP1 is not set.", "nc -vz {address_host} {address_port}"
    ),
    "address-private": Rule(
        "brokerIP1 is an address of the private network.", "nc -vz {address_host} {address_port}"
    ),
    "broker-unreachable": Rule(
        "The broker has ended or hangs, is an agent without `listen`, a firewall is between, or it registered an "
        "address that is not reached from here. A dead broker stays in routes until its registration ends (120 s by "
        "default).",
        "nc -vz {address_host} {address_port}",
    ),
    "discovery-unreachable": Rule(
        "Clients and brokers whose only setting is this HTTP side's address connect to what it lists. The address is "
        "not one by which the name server is reached from here, it has ended, or a firewall is between.",
        "nc -vz {address_host} {address_port}",
    ),
    # brokers
    "broker-without-master": Rule(
        "The master has ended or cannot register, or a controller has elected none.",
        "mqns -n {server} brokers",
    ),
    "broker-without-address": Rule(
        "It was refused when it registered for the first time (with exactly one topic, or without a topic table). "
        "Java's name servers forget such a name only when they are restarted.",
        "mqns -n {server} brokers",
    ),
    "broker-in-two-clusters": Rule(
        "Brokers of two clusters use one brokerName, and their queues are mixed up.",
        "mqns -n {server} brokers",
    ),
    "address-twice": Rule(
        "Only one broker can listen there, so clients send messages for one to the other: it was renamed, or brokerIP1 "
        "or listenPort of one is wrong.",
        "mqns -n {server} brokers",
    ),
    "lease-ending": Rule(
        "The broker hangs (pauses of GC), registers too rarely, or does not reach the name server.",
        "curl -s {http}/v1/brokers/{subject_in_path}",
    ),
    "broker-clock-ahead": Rule(
        "The broker's machine does not follow a time server: delayed messages and consumption by time go by its clock.",
        "curl -s {http}/v1/brokers/{subject_in_path}",
    ),
    "leases-not-told": Rule(
        "Requests of RocketMQ do not report leases; the HTTP side of redis-namesrv does.",
        "mqns -n {servers} doctor --http {http}",
    ),
    # topics
    "broker-wiped": Rule(
        "Its write permission was taken by request 205: by an operator, or by a broker that ends.",
        "mqns -n {servers} permissions add {subject}",
    ),
    "topic-not-writable": Rule(
        "Its permission has no write, it has no write queues, or its brokers have no master.",
        "mqns -n {server} routes {subject}",
    ),
    "topic-not-readable": Rule(
        "Its permission has no read, or it has no read queues.", "mqns -n {server} routes {subject}"
    ),
    "queues-never-read": Rule(
        "The topic was updated with fewer read queues than write queues.", "mqns -n {server} routes {subject}"
    ),
    "queues-uneven": Rule(
        "The topic was updated at one broker and not at the others.", "mqns -n {server} routes {subject}"
    ),
    "queues-without-broker": Rule(
        "Such a broker has gone and left its topics.", "mqns -n {server} routes {subject}"
    ),
    "order-malformed": Rule(
        "It was written by hand.", "mqns -n {server} kv get ORDER_TOPIC_CONFIG {subject}"
    ),
    "order-broker-unknown": Rule(
        "The broker has gone or was renamed since it was written.",
        "mqns -n {server} kv get ORDER_TOPIC_CONFIG {subject}",
    ),
    "order-queues-unknown": Rule(
        "The topic's queues became fewer since it was written.",
        "mqns -n {server} kv get ORDER_TOPIC_CONFIG {subject}",
    ),
    "order-unused": Rule(
        "The option is off by default, as in Java.", "mqns -n {server} config get orderMessageEnable"
    ),
    "topics-made-on-demand": Rule(
        "autoCreateTopicEnable is RocketMQ's default: a misspelt topic becomes a topic.",
        "mqns -n {server} routes {subject}",
    ),
}


def explained(findings: Iterable[Finding], facts: Facts) -> list[Finding]:
    """Return the findings with why they come about, and with the command of each."""
    urls = {server.address: server.http.url for server in facts.name_servers if server.http is not None}
    return [
        msgspec.structs.replace(
            finding,
            why=finding.why or RULES[finding.check].why,
            command=finding.command or command_of(finding, urls.get(finding.name_servers[0])),
        )
        for finding in findings
    ]


def command_of(finding: Finding, http: str | None) -> str:
    """Return the command of a finding, ready for a shell: names that come from peers are quoted."""
    url = command_line((http or HTTP_UNKNOWN).rstrip("/"))
    server, subject, last = finding.name_servers[0], finding.subjects[0], finding.subjects[-1]
    server = server.rpartition("://")[2].rstrip("/")  # where the HTTP side alone is asked
    address_host, _, address_port = last.rpartition(":")
    return RULES[finding.check].command.format(
        server=command_line(server),
        servers=command_line(";".join(finding.name_servers)),
        host=command_line(server.rpartition(":")[0]),
        http=url,
        http_option=f" --http {url}" if http else "",
        subject=command_line(*arguments(subject)),
        subject_in_path=command_line(name_in_path(subject)),
        namespace=command_line(*arguments(subject.partition(" ")[0])),
        address_host=command_line(*arguments(address_host.strip("[]"))),
        address_port=command_line(address_port),
    )
