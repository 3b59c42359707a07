"""Addresses of name servers, as options list them."""

import pytest

from registry.options.addresses import LIST_MOST, address_at, addresses_of, units_of
from registry.options.catalogue import ALWAYS_BLACK, InvalidOption, resolve


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("", ()),
        ("10.0.0.1:9876", ("10.0.0.1:9876",)),
        (" b:1 ;a:2; b:1;", ("b:1", "a:2")),
        ("[2001:db8::1]:65535;ns-1.example.com.:9876", ("[2001:db8::1]:65535", "ns-1.example.com.:9876")),
    ],
)
def test_a_list_keeps_its_order_and_has_each_address_once(text: str, addresses: tuple[str, ...]) -> None:
    assert addresses_of(text) == addresses


@pytest.mark.parametrize(
    "text",
    [
        *(
            "10.0.0.1",
            "10.0.0.1:",
            ":9876",
            "10.0.0.1:0",
            "10.0.0.1:65536",
            "10.0.0.1:9876x",
            "10.0.0.1:\u0663",
        ),
        *("2001:db8::1:9876", "[10.0.0.1:9876", "[fe80::1%eth0]:9876", "300.0.0.1:9876", ".example.com:9876"),
        *(
            "http://10.0.0.1:9876",
            "a b:1",
            "a,b:1",
            "a/b:1",
            "a\n:1",
            f"{'a' * 64}:1",
            "0.0.0.0:9876",
            "[::]:1",
        ),
    ],
)
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not host:port|where a server listens") as error:
        addresses_of(f"10.0.0.1:9876;{text}")
    assert repr(text) in str(error.value)


def test_a_list_has_a_most() -> None:
    assert len(addresses_of(";".join(f"h{number}:1" for number in range(LIST_MOST)))) == LIST_MOST
    with pytest.raises(ValueError, match="more than 100"):
        addresses_of(";".join(f"h{number}:1" for number in range(LIST_MOST + 1)))


def test_units_have_lists_of_their_own() -> None:
    assert units_of("") == {}
    assert units_of("blue=a:1;b:2, green.1 = c:3 ,") == {"blue": ("a:1", "b:2"), "green.1": ("c:3",)}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("blue", "the unit blue has no addresses"),
        ("blue=;", "the unit blue has no addresses"),
        ("=a:1", "'' is no name of a unit"),
        ("b/c=a:1", "'b/c' is no name of a unit"),
        (f"{'b' * 65}=a:1", "is no name of a unit"),
        ("b=a:1,b=c:2", "the unit b is there twice"),
        ("b=a", "'a' is not host:port"),
    ],
)
def test_a_bad_unit_is_named(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        units_of(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1:9876"),
        ("10.0.0.1:1", "10.0.0.1:1"),
        ("2001:db8::1", "[2001:db8::1]:9876"),
        ("[2001:db8::1]", "[2001:db8::1]:9876"),
        ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ("ns.example.com", "ns.example.com:9876"),
    ],
)
def test_a_host_without_a_port_gets_one(text: str, address: str) -> None:
    assert address_at(text, 9876) == address


@pytest.mark.parametrize("text", ["0.0.0.0", "::", "a b", "a:1:2", "fe80::1%eth0"])
def test_what_cannot_be_advertised_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not host:port|where a server listens"):
        address_at(text, 9876)


@pytest.mark.parametrize("key", ["discoveryAddress", "discoveryUnits", "advertiseAddress"])
def test_a_start_with_a_bad_address_is_refused_and_no_request_changes_one(key: str) -> None:
    with pytest.raises(InvalidOption, match=f"^{key}: "):
        resolve({key: "b=0.0.0.0:9876"}, {})
    assert key in ALWAYS_BLACK
