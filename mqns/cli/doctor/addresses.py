"""Checks of the addresses that brokers register, to which clients connect."""

import ipaddress
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Final

from mqns.addresses.syntax import split_address
from mqns.cli.doctor.facts import Facts, Probe, RegisteredBroker
from mqns.cli.doctor.findings import Finding, Severity
from mqns.errors import AddressError

Ip = IPv4Address | IPv6Address
DOCKER_BRIDGE: Final = IPv4Network("172.17.0.0/16")
CONTAINER_NETWORKS: Final = {
    **{IPv4Network(f"172.{n}.0.0/16"): "Docker takes for networks of its own" for n in range(18, 32)},
    IPv4Network("10.88.0.0/16"): "Podman gives to containers",
    IPv4Network("10.244.0.0/16"): "Kubernetes often gives to pods (flannel, kind)",
    IPv4Network("10.42.0.0/16"): "k3s and RKE give to pods",
}
BROKER_IP: Final = (
    "Set brokerIP1 (and brokerIP2) in the broker's configuration to an address that clients reach"
)


def check(facts: Facts) -> Iterator[Finding]:
    """Yield findings for unusable addresses, and for addresses without a listener."""
    servers = {ip for server in facts.reachable for ip in map(_ip, server.ips) if ip is not None}
    for address, members in _by_address(facts).items():
        probe = facts.probes.get(address)
        unfit = _unfit(address, probe, servers)
        if unfit is not None:
            severity, rule, why, advice = unfit
            yield _finding(severity, rule, f"{_titles(members)} registered {address}: {why}", members, advice)
        if probe is not None and probe.failure is not None and probe.ips:
            yield _unreachable(address, probe, members)


def _unfit(address: str, probe: Probe | None, servers: set[Ip]) -> tuple[Severity, str, str, str] | None:
    """Return severity, rule, reason and advice for an address that not every client can use; else None."""
    try:
        host, _ = split_address(address)
    except AddressError as error:
        return Severity.ERROR, "address-invalid", str(error), f"{BROKER_IP}."
    ips = [ip for ip in [_ip(host)] if ip is not None] or [
        ip for ip in map(_ip, probe.ips if probe else ()) if ip is not None
    ]
    if not ips:
        if probe is None:
            return None
        why = f"the name {host} is not known here"
        return (
            Severity.ERROR,
            "address-unresolved",
            why,
            f"{BROKER_IP}, or make the name known to all of them.",
        )
    return next((fault for ip in ips if (fault := _unfit_ip(ip, servers)) is not None), None)


def _unfit_ip(ip: Ip, servers: set[Ip]) -> tuple[Severity, str, str, str] | None:
    error, warning = Severity.ERROR, Severity.WARNING
    if ip.is_unspecified:
        return (
            error,
            "address-unspecified",
            "no client can connect to it; it means any address",
            f"{BROKER_IP}.",
        )
    if ip.is_loopback:
        alone = bool(servers) and all(server.is_loopback for server in servers)
        why = "every machine takes it for itself; only clients on the broker's own machine reach it"
        return warning if alone else error, "address-loopback", why, f"{BROKER_IP}."
    if ip.is_link_local:
        why = "it is link-local: no router passes it on, and it may change with each start"
        return error, "address-link-local", why, f"{BROKER_IP}."
    if ip.is_multicast or ip == IPv4Address("255.255.255.255"):
        return error, "address-invalid", "it is no address of one machine", f"{BROKER_IP}."
    if isinstance(ip, IPv4Address) and ip in DOCKER_BRIDGE:
        inside = any(server in DOCKER_BRIDGE for server in servers if isinstance(server, IPv4Address))
        why = "it belongs to Docker's default bridge: only containers on the broker's own host reach it"
        advice = f"{BROKER_IP}, such as the host's, and publish listenPort and listenPort - 2, or use host networking."
        return warning if inside else error, "address-container", why, advice
    if ip.is_private and any(server.is_global for server in servers):
        why = "it is private, but the name server was asked at a public address: clients from outside do not reach it"
        return warning, "address-private", why, f"{BROKER_IP}, or let clients in by the private network only."
    return None


def _unreachable(address: str, probe: Probe, members: list[RegisteredBroker]) -> Finding:
    network = next(
        (
            f" {net} is a network that {remark}: if the broker runs in a container, it has registered the "
            "container's address."
            for ip in map(_ip, probe.ips)
            if isinstance(ip, IPv4Address)
            for net, remark in CONTAINER_NETWORKS.items()
            if ip in net
        ),
        "",
    )
    return _finding(
        Severity.ERROR,
        "broker-unreachable",
        f"{_titles(members)} at {address}: {probe.failure}",
        members,
        "See whether the broker runs, and whether firewalls let its listenPort through; clients send and pull "
        f"there.{network}",
    )


def _by_address(facts: Facts) -> dict[str, list[RegisteredBroker]]:
    members_at: dict[str, list[RegisteredBroker]] = {}
    for member in facts.members():
        members_at.setdefault(member.address, []).append(member)
    return dict(sorted(members_at.items()))


def _titles(members: list[RegisteredBroker]) -> str:
    return " and ".join(f"{member.broker_name} (id {member.broker_id})" for member in members)


def _finding(
    severity: Severity, rule: str, what: str, members: list[RegisteredBroker], advice: str
) -> Finding:
    servers = tuple(dict.fromkeys(server for member in members for server in member.name_servers))
    names = dict.fromkeys(member.broker_name for member in members)
    return Finding(severity, rule, what, servers, (*names, members[0].address), advice)


def _ip(text: str) -> Ip | None:
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip
