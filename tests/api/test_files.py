"""How many connections and watchers the limit of open files leaves room for."""

import resource

import pytest

from api.transport.files import OWN_FILES, connections_within_files, watchers_within_files


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.append(new))


@pytest.mark.parametrize(
    ("hard", "connections", "watchers"),
    [
        (20_000, 4096, 10_000),
        (1000 + OWN_FILES, 500, 500),
        (200 + OWN_FILES, 100, 100),
        (14_000 + OWN_FILES, 4096, 9904),
        (resource.RLIM_INFINITY, 4096, 10_000),
        (OWN_FILES, 1, 0),
    ],
)
def test_watchers_have_what_connections_leave_and_half_at_least(
    monkeypatch: pytest.MonkeyPatch, hard: int, connections: int, watchers: int
) -> None:
    limited(monkeypatch, 100, hard)
    assert connections_within_files(4096, 10_000) == connections
    assert watchers_within_files(10_000, 4096) == watchers
