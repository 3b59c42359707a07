"""What a worker says of connections that its limit of open files has no room for."""

import logging

import pytest

from registry.options.catalogue import Options
from worker import server
from worker.transport import open_files

DEFAULT = Options().max_connections


@pytest.mark.parametrize(
    ("wanted", "fits", "level"),
    [
        pytest.param(DEFAULT, DEFAULT, None, id="all fit"),
        pytest.param(DEFAULT, DEFAULT - 256, logging.INFO, id="nearly all of the default"),
        pytest.param(DEFAULT, 256, logging.WARNING, id="much fewer than the default"),
        pytest.param(30_000, 29_744, logging.WARNING, id="fewer than an operator wants"),
    ],
)
def test_only_what_matters_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wanted: int,
    fits: int,
    level: int | None,
) -> None:
    monkeypatch.setattr(open_files, "fitting", lambda connections: min(connections, fits))
    with caplog.at_level(logging.INFO):
        assert server._that_fit(Options(max_connections=wanted)).max_connections == min(wanted, fits)
    assert [record.levelno for record in caplog.records if record.name != "asyncio"] == [level] * bool(level)
