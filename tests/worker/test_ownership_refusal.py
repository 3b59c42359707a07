"""The remark to a caller that is not the owner of a broker: one line, and never a long one."""

import pytest
from access.ownership import REMARK_MOST, not_owner


def test_it_names_the_broker_and_the_caller() -> None:
    line = "access denied: broker needs the owner of b; caller wire:1.2.3.4:5"
    assert not_owner("b", "wire:1.2.3.4:5") == line


@pytest.mark.parametrize(
    ("name", "actor"), [("b" * 60_000, "wire:[fd00::1]:5"), ("b", "http:" + "u" * 60_000)]
)
def test_what_is_long_is_cut(name: str, actor: str) -> None:
    line = not_owner(name, actor)
    assert len(line) <= REMARK_MOST
    assert line.startswith("access denied: broker needs the owner of b")
    assert f"; caller {actor[:5]}" in line


def test_no_name_begins_another_line() -> None:
    assert not_owner("b\r\n\x1b[0m", "a\n") == "access denied: broker needs the owner of b???[0m; caller a?"
