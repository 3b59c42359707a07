"""The places that planted bugs change are in the sources: seen without a server, in the quick tests."""

import pytest

from tests.history.planted import BUGS


@pytest.mark.parametrize("name", BUGS)
def test_the_place_is_there(name: str) -> None:
    assert BUGS[name].was in BUGS[name].text()
