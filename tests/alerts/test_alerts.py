"""Each alert fires when its fault happened to a running service, and no other one does; none fires on a well one.

`promtool test rules` judges recordings of scrapes (`recording.py`) of services to which the faults of `faults.py`
happen: to five services at the same time, each with a store of its own. What only the pipeline says (BrokerFlapping,
BudgetSpent, FoldMismatch) is written to the store as it writes it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from metrics.alerts import ALERTS
from tests.alerts.conftest import SOAK
from tests.alerts.faults import FAULTS, Fault
from tests.alerts.recording import Recording, promtool_says, slow_machine

pytestmark = [pytest.mark.needs("prometheus", "redis-server"), pytest.mark.timeout(240)]
Recordings = Callable[[str], Recording]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_fires_its_alerts_and_no_others(fault: Fault, recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings(fault.name)
    may = slow_machine(recording) - fault.fires
    assert promtool_says(recording, fault.fires, tmp_path, but=may) == ""


def test_none_fires_while_a_loaded_service_is_well(recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings(SOAK.name)
    assert recording.seconds >= 60
    assert recording.total("rocketmq_namesrv_requests_total", request_code="105") > 500
    assert recording.total("rocketmq_namesrv_requests_total", request_code="103") > 50
    assert recording.total("rocketmq_namesrv_route_freshness_seconds_count") > 20
    assert promtool_says(recording, (), tmp_path, but=slow_machine(recording)) == ""


def test_every_alert_has_a_fault() -> None:
    assert {alert.name for alert in ALERTS} == {name for fault in FAULTS for name in fault.fires}
