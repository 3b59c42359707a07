"""Texts of operators: rules, lists of networks, patterns of names; each compared with a plain model."""

import re
from ipaddress import IPv4Address, ip_address
from typing import Final

from msgspec.structs import replace

from access.caller import Caller, Listener, caller_at
from access.classes import AccessClass
from access.patterns import Pattern, Patterns
from access.policy import Policy
from access.rules import parse_rule
from access.start_check import refusal
from registry.options.catalogue import InvalidOption, Options
from registry.options.networks import Address, address_of, is_in, networks_of
from tests.fuzz.reading import is_one_line, read

HOSTS: Final = ("127.0.0.1", "::1", "10.0.0.5", "192.0.2.7", "2001:db8::1", "::ffff:10.0.0.5", "")
FACTORS: Final = frozenset(("open", "remoting", "loopback", "net", "tls", "mtls", "signed", "token"))
LACKING: Final = {"remoting": {"token"}, "http": {"remoting", "tls", "signed", "mtls"}}
NET: Final = "10.0.0.0/8, 2001:db8::/32"
MODEL_MOST: Final = 500
"""Bytes; the model takes the time of their square."""
ADMIN: Final = AccessClass.ADMIN


def access_rules(data: bytes) -> None:
    """A text is a rule as the documentation has it, and admits whom it says; else one line says what is wrong."""
    text = data[1:].decode(errors="replace")
    try:
        policy = Policy.of(Options(access_read=text, access_admin=text, access_networks=NET))
    except InvalidOption:
        assert _alternatives(text) is None, text
        _is_refused(text)
        return
    alternatives = _alternatives(text)
    assert alternatives is not None, text
    for number in range(data[0] if data else 0, 256, 37):
        caller = _caller(number)
        for of_class in (AccessClass.READ, ADMIN):
            expected = any(_holds(factors, caller, of_class) for factors in alternatives)
            assert policy.admits(of_class, caller) == expected, (text, caller)
            assert bool(policy.classes(caller) & of_class) == expected
    again = parse_rule(" ".join("+".join(factors) for factors in alternatives) or "off", networks_of(NET))
    assert again == policy.rules[ADMIN]
    _is_refused(text)


def _is_refused(text: str) -> None:
    reason = refusal(Options(access_admin=text, bind_address="192.0.2.1"))
    assert reason is None or is_one_line(reason)


def _alternatives(text: str) -> list[list[str]] | None:
    """Return the factors of each alternative; None of what is no rule."""
    words = [word for word in re.split(r"[\s,]", text) if word]
    if words == ["off"]:
        return []
    alternatives = [word.split("+") for word in words]
    factors = [factor for factors in alternatives for factor in factors]
    return alternatives if factors and all(map(_is_factor, factors)) else None


def _is_factor(text: str) -> bool:
    return text in FACTORS or (text.startswith("cidr:") and _network(text[5:]) is not None)


def _network(text: str) -> tuple[int, int, int] | None:
    """Return version, first bits and how many of them; None of what is no network."""
    host, slash, prefix = text.partition("/")
    try:
        address = ip_address(host)
    except ValueError:
        return None
    width = address.max_prefixlen
    length = _prefix(prefix, width) if slash else width
    if length is None or "%" in host:
        return None
    bits = int(address) >> (width - length)
    return (address.version, bits, length) if bits << (width - length) == int(address) else None


def _prefix(text: str, width: int) -> int | None:
    """Return the length of a prefix, of IPv4 also one that is written as a mask, or as its complement."""
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0") or "0"
        return int(digits) if len(digits) < 9 and int(digits) <= width else None
    if width != 32:
        return None
    try:
        mask = int(IPv4Address(text))
    except ValueError:
        return None
    for length in range(33):
        whole = (1 << 32) - (1 << (32 - length))
        if mask in (whole, whole ^ 0xFFFFFFFF):
            return length if mask == whole or length not in (0, 32) else 32 - length
    return None


def _caller(number: int) -> Caller:
    listener: Listener = "http" if number & 1 else "remoting"
    at = caller_at(
        listener, HOSTS[number // 2 % len(HOSTS)], forwarded=bool(number & 64), tls=bool(number & 128)
    )
    proofs = number * 7 % 8
    return replace(at, token=-(proofs & 1), signed=-(proofs >> 1 & 1), mtls=-(proofs >> 2))


def _holds(factors: list[str], caller: Caller, of_class: AccessClass) -> bool:
    if not LACKING[caller.listener].isdisjoint(factors):
        return False
    return all(_factor_holds(factor, caller, of_class) for factor in factors)


def _factor_holds(factor: str, caller: Caller, of_class: AccessClass) -> bool:
    match factor:
        case "open" | "remoting":
            return True
        case "loopback":
            return caller.loopback
        case "tls":
            return caller.tls
        case "net":
            return caller.address is not None and any(_has(text.strip(), caller) for text in NET.split(","))
        case "signed":
            return bool(caller.signed) and (of_class != ADMIN or caller.tls or caller.loopback)
        case "mtls" | "token":
            return bool(getattr(caller, factor))
        case _:
            return caller.address is not None and _has(factor[5:], caller)


def _has(text: str, caller: Caller) -> bool:
    network, address = _network(text), caller.address
    assert network is not None
    assert address is not None
    version, bits, length = network
    return version == address.version and int(address) >> (address.max_prefixlen - length) == bits


def networks(data: bytes) -> None:
    """A list of networks is one of those that the parts are, and has the hosts that their bits say."""
    text, _, host = data.decode(errors="replace").partition("\0")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    known = [_network(part) for part in parts]
    found = read(lambda: networks_of(text), ValueError)
    if found is None:
        assert None in known, text
        return
    assert [
        (one.version, int(one.network_address) >> (one.max_prefixlen - one.prefixlen), one.prefixlen)
        for one in found
    ] == known
    address = _address(host)
    assert address == address_of(host)
    assert is_in(host, found) == (
        address is not None and any(_has(part, Caller("http", address)) for part in parts)
    )


def _address(text: str) -> Address | None:
    """Return the address that a host is, in brackets or not."""
    text = text[1:] if text.startswith("[") else text
    text = text[:-1] if text.endswith("]") else text
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = int(address) >> 32 == 0xFFFF and address.version == 6
    return IPv4Address(int(address) & 0xFFFFFFFF) if mapped else address


def name_patterns(data: bytes) -> None:
    """A name matches as if each run of `*` were tried."""
    texts = data.decode(errors="replace").split("\0")
    name, bound, patterns = texts[0], texts[1][:1].strip("*") if len(texts) > 1 else "", texts[2:]
    found = [Pattern.of(text, bound).matches(name) for text in patterns]
    if len(data) > MODEL_MOST:
        return
    matched = [_matches(text, name, bound) for text in patterns]
    assert found == matched
    if not bound:
        assert Patterns.of(patterns).match(name) == any(matched)


def _matches(pattern: str, name: str, bound: str) -> bool:
    """Return whether a name matches, by the places of the pattern where it may be after each letter."""
    places = _past_stars(pattern, {0})
    for letter in name:
        stay = {at for at in places if at < len(pattern) and pattern[at] == "*" and letter != bound}
        places = stay | {at + 1 for at in places if at < len(pattern) and pattern[at] == letter}
        places = _past_stars(pattern, places)
    return len(pattern) in places


def _past_stars(pattern: str, places: set[int]) -> set[int]:
    every = set(places)
    for at in places:
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            every.add(at)
    return every
