"""promtool takes the rules; on series that no fault of `faults.py` makes they fire or do not, as they should."""

import subprocess
from pathlib import Path
from typing import Final

import msgspec
import pytest

from metrics.alerts import ALERTS, RECORDINGS
from metrics.rules import written_out
from tests.alerts.recording import checked
from tools.alert_rules import RULES

pytestmark = pytest.mark.needs("prometheus")
MINUTES: Final = 100


class Case(msgspec.Struct, frozen=True):
    """Series with their values, each `step_s` seconds, after which `fires` have fired; the service is ready."""

    about: str
    series: dict[str, str]
    fires: str = ""
    step_s: int = 30
    ready: bool = True


EXPIRED: Final = 'N_unregistration_events_total{ns="a",cause="expired"}'
CLOSED: Final = 'N_unregistration_events_total{ns="a",cause="closed"}'
UP: Final = 'N_broker_up{ns="a",cluster="c1",broker="b",broker_id="0"}'
ACTIVE: Final = 'N_active_brokers{ns="a",cluster="c1",role="master"}'
DENIED: Final = 'N_security_events_total{ns="a",operation="authz",result="denied"}'
RELOAD: Final = 'N_access_file_last_reload_successful{ns="a",instance="%s"}'
CONFLICTS: Final = 'N_identity_conflicts_total{ns="a",kind="two_names"}'
LOOKUPS: Final = 'N_requests_total{ns="a",request_code="105",result="%s"}'
DRIFT: Final = 'N_drift_differences{ns="a",comparison="d",kind="%s"}'
UNREACHABLE: Final = 'N_drift_unreachable{ns="a",comparison="d"}'
AGE: Final = 'N_drift_%s_seconds{ns="a",comparison="d"}'
MISMATCHES: Final = 'N_events_fold_mismatches{ns="a"}'
TIMED: Final = 'N_request_duration_seconds_%s{ns="a",request_code="105"%s}'
FRESH: Final = 'N_route_freshness_seconds_%s{ns="a"%s}'
IN_TIME: Final = ',le="0.005"'
WORKERS: Final = 'N_workers{ns="a",instance="%s",role="http"}'
CASES: Final = (
    Case(
        "processes of one of two servers publish no metrics any more",
        {'rocketmq_nameserver_up{ns="a",instance="2"}': "1x200", WORKERS % "2": "1x60 stale"},
        "FollowerLost",
    ),
    Case(
        "for a moment they publish none",
        {'rocketmq_nameserver_up{ns="a",instance="2"}': "1x200", WORKERS % "2": "1x60 _x2 1x138"},
    ),
    Case(
        "one lookup of few fails",
        {LOOKUPS % "ok": "0+1x200", LOOKUPS % "error": "0x100 1x100"},
    ),
    Case(
        "all of few lookups fail",
        {LOOKUPS % "ok": "0x200", LOOKUPS % "error": "0+1x200"},
        "LookupBudgetFast LookupBudgetSlow LookupBudgetLeak",
    ),
    Case("no lookups", {LOOKUPS % "ok": "0x200", LOOKUPS % "error": "0x200"}),
    Case(
        "few lookups, all read from a slow store",
        {
            LOOKUPS % "ok": "0+1x200",
            TIMED % ("count", ""): "0+1x200",
            TIMED % ("bucket", IN_TIME): "0x200",
        },
    ),
    Case(
        "few changes, one of them late",
        {FRESH % ("count", ""): "0+1x10 10x190", FRESH % ("bucket", IN_TIME): "0+1x9 9x191"},
    ),
    Case("one of three brokers expires", {EXPIRED: "0x60 1x140", ACTIVE: "3x200"}, "BrokerExpired"),
    Case(
        "one of three brokers expires, scrapes a minute apart",
        {EXPIRED: "0x30 1x70", ACTIVE: "3x100"},
        "BrokerExpired",
        step_s=60,
    ),
    Case("two of three brokers expire", {EXPIRED: "0x60 2x140", ACTIVE: "3x200"}, "BrokerExpired MassExpiry"),
    Case("a broker dies", {CLOSED: "0x60 1x140", UP: "1x60 0x140"}, "BrokerGone"),
    Case("a broker is started again", {CLOSED: "0x60 1x140", UP: "1x60 0x8 1x132"}),
    Case("a broker died hours ago", {CLOSED: "1x200", UP: "0x200"}),
    Case("two conflicts", {CONFLICTS: "0x60 2x140"}),
    Case("three conflicts", {CONFLICTS: "0x60 3x140"}, "IdentityConflict"),
    Case("a few refusals", {DENIED: "0+4x200"}),
    Case("a flood of refusals", {DENIED: "0+60x200"}, "AccessDenied"),
    Case("a flood of what is over", {DENIED.replace("denied", "expired"): "0+60x200"}),
    Case(
        "one of two processes has not taken the access file",
        {RELOAD % "1": "1x200", RELOAD % "2": "1x60 0x140"},
        "AccessFileRefused",
    ),
    Case("an access file is written half, and then whole", {RELOAD % "1": "1x60 0 1x140"}),
    Case(
        "topics that are read only on purpose",
        {'N_topics_without_writable_master{ns="a",cluster="c1"}': "2x200"},
    ),
    Case(
        "a listener without a certificate",
        {'N_tls_cert_expiry_timestamp_seconds{ns="a",listener="http"}': "0x200"},
    ),
    Case("the first report has mismatches", {MISMATCHES: "_x20 3x180"}, "FoldMismatch"),
    Case("the first report has none", {MISMATCHES: "_x20 0x180"}),
    Case("name servers agree", {DRIFT % "kv-differs": "0x200", UNREACHABLE: "0x200"}),
    Case(
        "name servers differ", {DRIFT % "kv-differs": "0x60 1x140", DRIFT % "topic-missing": "0x200"}, "Drift"
    ),
    Case("name servers differed for a moment", {DRIFT % "kv-differs": "0x60 1x5 0x135"}),
    Case("a name server does not answer a comparison", {UNREACHABLE: "0x60 1x140"}, "DriftUnknown"),
    Case(
        "a comparison is not reported any more",
        {AGE % "age": "0x60 0+30x140", AGE % "valid": "180x200"},
        "DriftUnknown",
    ),
    Case("a comparison is reported", {AGE % "age": "0x60 60x140", AGE % "valid": "180x200"}),
    Case(
        "facts of the store, from two HTTP workers",
        {f'N_expiry_lag_seconds{{ns="a",instance="{instance}"}}': "10x200" for instance in "12"},
    ),
    Case(
        "one of two namespaces is scraped no more",
        {'rocketmq_nameserver_up{ns="b"}': "1x60 stale", 'N_workers{ns="b",role="http"}': "1x60 stale"},
        "Down",
    ),
    Case(
        "an HTTP worker of two is not ready",
        {'rocketmq_nameserver_up{ns="a",instance="2"}': "0x200"},
        "NotReady",
    ),
    Case("nothing is scraped", {'up{job="other"}': "1x200"}, "Down", ready=False),
)


@pytest.mark.parametrize("case", CASES, ids=[case.about for case in CASES])
def test_what_fires(case: Case, tmp_path: Path) -> None:
    ready = (
        {'rocketmq_nameserver_up{ns="a",instance="1"}': "1x200", WORKERS % "1": "1x200"} if case.ready else {}
    )
    series = [
        {"series": written_out(name), "values": values} for name, values in (ready | case.series).items()
    ]
    assert checked(series, case.step_s, MINUTES * 60, case.fires.split(), tmp_path) == ""


def test_promtool_takes_the_rules() -> None:
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(RULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"SUCCESS: {len(RECORDINGS) + len(ALERTS)} rules found" in done.stdout, done.stderr
