"""A server that breaks one rule is caught by its history, and the rule is named."""

from pathlib import Path

import pytest

from faults.history import judge
from mqnamesrv.store import EmbeddedStore
from testbed.nameserver import NameServer
from tests.history.planted import BUGS
from tests.history.recording import recorded

ROUNDS, ROUND_S = 8, 3.0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BUGS)
def test_is_caught(store: EmbeddedStore, tmp_path: Path, ending: list[NameServer], name: str) -> None:
    bug = BUGS[name]
    server = NameServer(
        tmp_path / "server",
        {"remotingWorkers": "2"},
        url=store.url,
        namespace="planted",
        tree=bug.planted(tmp_path / "tree"),
    )
    try:
        server.start()
        for seed in range(ROUNDS):
            report = judge(recorded(server, ROUND_S, seed))
            if not report.ok:
                break
    finally:
        ending.append(server)
        server.begin_stop()
    print(f"\n{name}, round {seed + 1}\n{report}")
    rules = {rule for complaint in report.complaints for rule in complaint.rules}
    assert rules & bug.rules, report
