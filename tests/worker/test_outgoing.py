"""Which registered addresses this server connects to."""

import pytest

from registry.options.catalogue import Options
from worker.outgoing import endpoint


@pytest.mark.parametrize(
    ("address", "host", "to"),
    [
        pytest.param("10.0.0.1:10911", "10.0.0.1", ("10.0.0.1", 10911), id="where the peer came from"),
        pytest.param("[fd00::1]:10911", "[fd00:0::1]", ("fd00::1", 10911), id="IPv6"),
        pytest.param("fd00::1:10911", "[fd00::1]", ("fd00::1", 10911), id="IPv6 without brackets"),
        pytest.param("::ffff:10.0.0.1:10911", "10.0.0.1", ("10.0.0.1", 10911), id="IPv4 in IPv6"),
        pytest.param("10.0.0.2:10911", "10.0.0.1", None, id="elsewhere"),
        pytest.param("172.16.3.4:1", "10.0.0.1", ("172.16.3.4", 1), id="a listed network"),
        pytest.param("172.17.3.4:1", "10.0.0.1", None, id="beside a listed network"),
        pytest.param("localhost:1", "localhost", None, id="a name"),
        pytest.param("0x7f.1:1", "127.0.0.1", None, id="an odd way to write an address"),
        pytest.param("10.0.0.1:0", "10.0.0.1", None, id="port 0"),
        pytest.param("10.0.0.1:65536", "10.0.0.1", None, id="port 65536"),
        pytest.param("10.0.0.1:x", "10.0.0.1", None, id="no port"),
        pytest.param("10.0.0.1", "10.0.0.1", None, id="an address alone"),
        pytest.param("", "", None, id="empty"),
        pytest.param("unix:1", "unix", None, id="a Unix socket"),
    ],
)
def test_an_address_is_used_if_the_peer_came_from_it_or_it_is_listed(
    address: str, host: str, to: tuple[str, int] | None
) -> None:
    assert endpoint(address, (host,), Options(probe_networks="fe80::/16,172.16.0.0/16")) == to
