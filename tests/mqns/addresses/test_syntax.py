"""Address lists as text."""

import pytest

from mqns.addresses.syntax import parse_addresses, split_address
from mqns.errors import AddressError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:9876;b:9876", ("a:9876", "b:9876")),
        ("10.0.0.1:9876", ("10.0.0.1:9876",)),
        ("[::1]:9876;[fe80::1%eth0]:1", ("[::1]:9876", "[fe80::1%eth0]:1")),
        (" a:1 ; b:2 ;\n", ("a:1", "b:2")),
        (";;a:1;;", ("a:1",)),
        ("b:1;a:1;b:1", ("b:1", "a:1")),
        ("http://a:9876", ("a:9876",)),
        ("http://a:9876;b:9876", ("a:9876", "b:9876")),
        ("https://MQ_INST_1_2.example:80", ("MQ_INST_1_2.example:80",)),
        ("name-server.example; 10.0.0.1", ("name-server.example:9876", "10.0.0.1:9876")),
        ("localhost:9876;localhost", ("localhost:9876",)),
        ("[::1];::1", ("[::1]:9876",)),
        ("fe80::1%eth0;2001:db8:0:0:0:0:0:1", ("[fe80::1%eth0]:9876", "[2001:db8:0:0:0:0:0:1]:9876")),
        ("", ()),
        (" ; ", ()),
    ],
)
def test_a_list(text: str, addresses: tuple[str, ...]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("10.0.0.1:9876", "10.0.0.1", 9876),
        ("[::1]:9876", "::1", 9876),
        ("::1:9876", "::1", 9876),
        ("name-server.example:65535", "name-server.example", 65535),
    ],
)
def test_an_address_is_split_at_its_last_colon(address: str, host: str, port: int) -> None:
    assert split_address(address) == (host, port)


@pytest.mark.parametrize(
    "piece",
    [
        "host:",
        "host:0",
        "host:65536",
        "host:99999999999999999999999",
        "host:-1",
        "host:+1",
        "host:1_0",
        "host:१",
        ":9876",
        "[]:9876",
        "[::1:9876",
        "ho st:9876",
        "a\x00b:9876",
        "a,b:9876",
        "a:9876,b:9876",
        "http://a:1/path",
        "http://a:1",  # RocketMQ cuts it off at the beginning of a list only
        "::1:9876",
        "2001:db8::1:1",
        "[::1]9876",
        "host/path",
        "x" * 256 + ":1",
        "ho st",
    ],
)
def test_the_piece_that_is_no_address_is_named(piece: str) -> None:
    with pytest.raises(AddressError) as error:
        parse_addresses(f"a:9876;{piece};b:9876")
    assert repr(piece)[:-1] in str(error.value)
    assert isinstance(error.value, ValueError)


def test_an_address_without_a_port_may_be_refused() -> None:
    """As in an answer of the HTTP endpoint, which may be any page."""
    assert parse_addresses("a:1", default_port=None) == ("a:1",)
    with pytest.raises(AddressError, match="no port in the address 'hello'"):
        parse_addresses("hello", default_port=None)
