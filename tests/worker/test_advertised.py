"""At which address a worker says that it is reached."""

import socket

import pytest

from registry.options.catalogue import Options
from worker import advertised
from worker.advertised import advertised_address


def of(host: str, **options: str) -> tuple[str, int]:
    """Return the address of a worker that listens on a host, and its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        return advertised_address(Options(**options), listener), listener.getsockname()[1]  # type: ignore[arg-type]


def test_it_is_where_the_worker_listens() -> None:
    address, port = of("127.0.0.1")
    assert address == f"127.0.0.1:{port}"


def test_an_operator_says_better() -> None:
    address, port = of("127.0.0.1", advertise_address="ns.example.com")
    assert address == f"ns.example.com:{port}"
    assert of("127.0.0.1", advertise_address="10.0.0.1:19876")[0] == "10.0.0.1:19876"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_addresses_are_none_but_that_from_which_the_machine_sends(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advertised, "ROUTED", ((socket.AF_INET, "127.1.2.3"),))
    address, port = of(host)
    assert address == f"127.0.0.1:{port}"


def test_a_socket_of_ipv4_is_reached_by_no_address_of_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advertised, "ROUTED", ((socket.AF_INET6, "::1"),))
    assert of("0.0.0.0")[0] == ""
    assert of("::")[0].startswith("[::1]:")


def test_without_a_route_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        advertised, "ROUTED", ((socket.AF_INET, "255.255.255.255"),)
    )  # no such socket may send there
    assert of("0.0.0.0")[0] == ""
