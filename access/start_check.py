"""What is open by accident, or closed to all: looked at before a process listens (docs/access.md)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from access.access_file import InvalidAccessFile, Loaded, load
from access.caller import Listener
from access.classes import OPERATORS, AccessClass
from access.one_line import one_line
from access.policy import LACKS, OPTIONS, Policy
from access.principals import Principals
from access.rules import Alternative
from registry.options.catalogue import InvalidOption, Options
from registry.options.networks import Network, networks_of
from registry.options.profiles import is_loopback
from registry.options.tls import TlsMode, with_tls_file

__all__ = ["EXIT_CODE", "is_insecure", "refusal", "warnings"]

EXIT_CODE: Final = 253
"""Of a process that does not start because of its rules."""
REASON_MOST: Final = 2_000
"""Characters of why a process does not start: it shows what an option has."""
ON_THE_WIRE: Final = AccessClass.READ | AccessClass.BROKER | OPERATORS
"""Classes of the remoting port, where a PROXY header gives the address of a caller."""


def refusal(options: Options) -> str | None:
    """Return why a name server with these options does not start, and the cure, in one line; None if it starts."""
    reason = next(_reasons(options), None)
    return None if reason is None else one_line(reason, REASON_MOST)


def warnings(options: Options) -> tuple[str, ...]:
    """Return what an operator should know of rules that `refusal` lets pass, a sentence each."""
    policy = Policy.of(options)
    sentences = [*_open_to_any(options, policy)]
    if policy.observes:
        sentences.append(
            "accessMode=observe answers what the rules refuse; set enforce once the log shows nothing"
        )
    if _has_all(networks_of(options.http_trusted_proxies)):
        sentences.append(
            f"httpTrustedProxies={options.http_trusted_proxies} has each client over HTTP name its own address; list "
            "the proxies"
        )
    loaded = _loaded(options)
    sentences += [f"accessFile: {warning}; take a longer one" for warning in loaded.warnings]
    return (*sentences, *_unasked(options, loaded.principals))


def is_insecure(options: Options) -> bool:
    """Return whether any caller at a port that other machines reach may do what operators do."""
    policy = Policy.of(options)
    return any(_open_to_any(options, policy)) or (policy.observes and bool(_reached(options)))


def _reasons(options: Options) -> Iterator[str]:
    try:
        policy = Policy.of(options)
    except InvalidOption as error:
        yield str(error)
        return
    yield from _open_rules(options, policy)
    yield from _closed_rules(options, policy)
    yield from _forgeable(options, policy)
    yield from _unreadable(options)


def _open_rules(options: Options, policy: Policy) -> Iterator[str]:
    """Yield rules that are open to any caller, unless the operator wants that."""
    if not (options.access_insecure or options.access_profile == "java"):
        yield from (
            f"{sentence}; or set accessInsecure=true if the network itself is guarded"
            for sentence in _open_to_any(options, policy)
        )


def _open_to_any(options: Options, policy: Policy) -> Iterator[str]:
    """Yield rules that have any caller do what operators do, at listeners that other machines reach."""
    for of_class in OPERATORS:
        key, attribute = OPTIONS[of_class]
        places = [
            place
            for alternative in policy.rules[of_class].alternatives
            if _is_for_all(alternative, options)
            for listener, place in _reached(options).items()
            if not alternative.factors & LACKS[listener]
        ]
        if places:
            yield (
                f"{key}={getattr(options, attribute)} lets any caller at {' or '.join(dict.fromkeys(places))} do "
                "what operators do; name loopback, networks or proofs instead"
            )


def _is_for_all(alternative: Alternative, options: Options) -> bool:
    """A certificate that every TLS session has to show is a proof, too."""
    return alternative.is_for_all and not ("tls" in alternative.factors and _asks_all(with_tls_file(options)))


def _reached(options: Options) -> Mapping[Listener, str]:
    """Return the listeners that other machines reach, and their addresses."""
    places: dict[Listener, tuple[str, int]] = {
        "remoting": (options.bind_address, options.listen_port),
        "http": (options.http_bind_address, options.http_port),
    }
    return {listener: f"{host}:{port}" for listener, (host, port) in places.items() if not is_loopback(host)}


def _closed_rules(options: Options, policy: Policy) -> Iterator[str]:
    """Yield rules that no caller can meet, since no client is asked for a certificate."""
    for of_class, rule in policy.rules.items():
        needs_one = all("mtls" in alternative.factors for alternative in rule.alternatives)
        if rule.alternatives and needs_one and (lack := _why_no_certificates(with_tls_file(options))):
            key, attribute = OPTIONS[of_class]
            yield f"{key}={getattr(options, attribute)} admits no caller, for {lack}"


def _unasked(options: Options, principals: Principals) -> Iterator[str]:
    """Yield that principals have certificates which no client is asked for: without them they are anonymous."""
    names = [principal.name for principal in principals if principal.certificates]
    if names and (lack := _why_no_certificates(with_tls_file(options))):
        yield f"accessFile: no certificate proves principal {names[0]}, for {lack}"


def _why_no_certificates(options: Options) -> str | None:
    """Return why callers cannot prove themselves by certificates, and the cure."""
    if TlsMode.parse(options.tls_server_mode) is TlsMode.DISABLED:
        return "tls.server.mode=disabled; set permissive or enforcing"
    if options.tls_test_mode_enable:
        return "tls.test.mode.enable=true; set it to false, and name key, certificate and trust file"
    optional = options.tls_server_need_client_auth.lower() == "optional" and options.tls_server_auth_client
    if not (optional or _asks_all(options)):
        return (
            "clients are asked for no certificate; set tls.server.need.client.auth=optional and "
            "tls.server.authClient=true, or require"
        )
    if not options.tls_server_trust_cert_path:
        return "no certificate is trusted; name their signers' in tls.server.trustCertPath"
    return None


def _asks_all(options: Options) -> bool:
    """Return whether a TLS session needs a client's certificate (`worker.transport.tls_context`)."""
    return not options.tls_test_mode_enable and options.tls_server_need_client_auth.lower() == "require"


def _forgeable(options: Options, policy: Policy) -> Iterator[str]:
    """Yield where a caller's address may be another one's: any peer's word, or that of a balancer that says none.

    Loopback is left out: a caller on this machine has what `loopback` gives by itself."""
    if not options.proxy_protocol:
        return
    trusted = networks_of(options.proxy_trusted_cidrs)
    if _has_all(trusted):
        yield (
            f"proxyTrustedCidrs={options.proxy_trusted_cidrs} has each peer name its own address; list the balancers' "
            "addresses"
        )
    if options.proxy_required:
        return
    for of_class in ON_THE_WIRE:
        for network in policy.rules[of_class].networks:
            if any(_overlap(network, balancers) for balancers in trusted if not balancers.is_loopback):
                yield (
                    f"proxyTrustedCidrs={options.proxy_trusted_cidrs} is within {network} of {OPTIONS[of_class][0]}: "
                    "callers behind a balancer that sends no PROXY header have its rights; set proxyRequired=true, or "
                    "leave the balancers out of the rule"
                )


def _unreadable(options: Options) -> Iterator[str]:
    try:
        _loaded(options)
    except InvalidAccessFile as error:
        yield f"accessFile: {error}"


def _loaded(options: Options) -> Loaded:
    """Raises InvalidAccessFile."""
    return load(Path(options.access_file)) if options.access_file else Loaded(Principals())


def _has_all(networks: tuple[Network, ...]) -> bool:
    return any(not network.prefixlen for network in networks)


def _overlap(first: Network, second: Network) -> bool:
    return first.version == second.version and first.overlaps(second)
