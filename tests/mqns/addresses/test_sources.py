"""Where the list comes from."""

import pytest

from mqns.addresses.sources import configured_addresses
from mqns.errors import AddressError

PROPERTIES = {"rocketmq.namesrv.addr": "property:1"}
ENVIRONMENT = {"NAMESRV_ADDR": "environment:1;environment:2"}


@pytest.mark.parametrize(
    ("given", "properties", "environ", "addresses"),
    [
        ("given:1", PROPERTIES, ENVIRONMENT, ("given:1",)),
        (None, PROPERTIES, ENVIRONMENT, ("property:1",)),
        ("", PROPERTIES, ENVIRONMENT, ("property:1",)),
        (" ; ", PROPERTIES, ENVIRONMENT, ("property:1",)),
        (None, {}, ENVIRONMENT, ("environment:1", "environment:2")),
        (None, {"rocketmq.namesrv.addr": ""}, ENVIRONMENT, ("environment:1", "environment:2")),
        (None, None, {}, ()),
    ],
)
def test_the_first_list_there_is(
    given: str | None, properties: dict[str, str] | None, environ: dict[str, str], addresses: tuple[str, ...]
) -> None:
    assert configured_addresses(given, properties, environ) == addresses


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "here:1")
    assert configured_addresses() == ("here:1",)


def test_a_list_that_cannot_be_read_is_an_error_and_not_passed_over() -> None:
    with pytest.raises(AddressError, match="'nonsense:'"):
        configured_addresses("nonsense:", PROPERTIES, ENVIRONMENT)
