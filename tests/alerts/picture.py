"""docs/dashboard.png: the panels of the dashboard over three minutes of a real service: `make dashboard-picture`.

A Prometheus scrapes each second what the service says while clients look up, brokers come, hang and go, an operator
drains and wipes, and the store stands still; then each panel's queries are evaluated by it, and drawn here: no Grafana
runs."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from testbed.broker import Broker
from testbed.processes import stopped
from tests.alerts.conftest import load
from tests.alerts.drawing import HEIGHT, WIDTH, Panel, Series, legend_of, panel_svg
from tests.alerts.prometheus import DASHBOARD, Prometheus, filled_in, report
from tests.alerts.service import Peer, Service, repeated

PICTURE: Final = Path(__file__).resolve().parents[2] / "docs" / "dashboard.png"
STEP_S: Final = 3
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
STYLE: Final = """
body { margin: 8px; background: #111217; color: #ccccdc; font: 11px sans-serif; }
h2 { font-size: 15px; margin: 10px 4px 4px; }
svg { margin: 2px; display: inline-block; shape-rendering: crispEdges; }
text { font: 11px sans-serif; fill: #ccccdc; }
.small { font-size: 10px; }
.title { font-weight: bold; font-size: 12px; }
.head { fill: #8ab8ff; font-size: 10px; }
.dark { fill: #111217; font-size: 10px; }
.grid { stroke: #2c3036; }
"""
OUTAGE_S: Final = 8.0


def main() -> None:
    """Run the service for three minutes, and write the picture to the path given or docs/dashboard.png."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    with tempfile.TemporaryDirectory(prefix="dashboard-") as folder:
        page = Path(folder) / "dashboard.html"
        page.write_text(_recorded(Path(folder)), encoding="utf-8")
        _photograph(page, path)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def _recorded(folder: Path) -> str:
    """Return the page of a run."""
    with Service(folder).running() as service:
        report(service)
        with Prometheus(
            folder / "prometheus", f"127.0.0.1:{service.server.http_port}"
        ).running() as prometheus:
            service.await_well()
            begin = time.time()
            with load(service), _brokers(service):
                for at_s, act in HAPPENS:
                    time.sleep(max(begin + at_s - time.time(), 0))
                    act(service)
            return _page(prometheus, begin, time.time())


@contextmanager
def _brokers(service: Service) -> Iterator[None]:
    """Two masters and their slaves, which send heartbeats, and a broker that comes and goes."""
    with ExitStack() as stack:
        for number in range(4):
            address = f"127.0.7.{number}:10911"
            broker = Broker(name=f"broker-{number % 2}", id=number // 2, addr=address, cluster="c2")
            stack.enter_context(repeated(1, partial(Peer(service).register, broker)))
        stack.enter_context(repeated(9, lambda: _announce(service, "passing", 9, lease_ms=4000)))
        yield


def _announce(service: Service, name: str, place: int, *, lease_ms: int) -> None:
    service.announce(name, f"127.0.7.{place}:10911", heartbeatTimeoutMillis=lease_ms)


def _hang(service: Service) -> None:
    """Have three leases end."""
    for number in range(3):
        _announce(service, f"hangs-{number}", 20 + number, lease_ms=10_000)


def _operate(service: Service) -> None:
    drain = {"owner": "operator", "reason": "kernel"}
    service.http.put("/v1/brokers/broker-1/drain", json=drain).raise_for_status()
    service.http.put("/v1/kv/ORDER_TOPIC_CONFIG/TA", json={"value": "broker-0:4"}).raise_for_status()


def _stand_still(service: Service) -> None:
    with stopped(service.store.process.pid):
        time.sleep(OUTAGE_S)


def _end(service: Service) -> None:
    """Do nothing: the time is over."""


HAPPENS: Final[tuple[tuple[float, Callable[[Service], object]], ...]] = (
    (30, _hang),
    (60, _operate),
    (90, _stand_still),
    (130, _hang),
    (180, _end),
)
"""Seconds from the beginning, and what happens then."""


def _page(prometheus: Prometheus, begin: float, end: float) -> str:
    """Return HTML of all panels, by row."""
    parts = [f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><body>"]
    for panel in DASHBOARD["panels"]:
        if panel["type"] == "row":
            parts.append(f"<h2>{panel['title']}</h2>")
        else:
            parts.append(
                panel_svg(Panel(panel, begin, end, STEP_S), list(_series(prometheus, panel, begin, end)))
            )
    return "".join(parts)


def _series(prometheus: Prometheus, panel: dict[str, Any], begin: float, end: float) -> Iterator[Series]:
    """Yield what the panel's queries return in that time; of one that shows what is now, what there was at its end."""
    for target in panel["targets"]:
        first = end if target["instant"] else begin
        window = {"start": str(first), "end": str(end), "step": str(STEP_S)}
        for one in prometheus.ask("query_range", query=filled_in(target["expr"]), **window)["result"]:
            points = [(float(at), float(value)) for at, value in one["values"]]
            yield Series(legend_of(target["legendFormat"], one["metric"]), one["metric"], points)


def _photograph(page: Path, path: Path) -> None:
    """Write a PNG of the whole page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser, "no Chromium: see `make need-chromium`"
    lines = sum(-(-_panels(row) // 3) for row in range(len(_rows())))
    height = lines * (HEIGHT + 8) + len(_rows()) * 34 + 10
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--disable-lcd-text",
    ]
    size = f"--window-size={3 * (WIDTH + 8) + 24},{height}"
    profile = f"--user-data-dir={page.parent / 'profile'}"
    subprocess.run(
        [browser, *options, size, profile, f"--screenshot={path}", page.as_uri()],
        check=True,
        capture_output=True,
        timeout=60,
    )


def _rows() -> list[int]:
    return [number for number, panel in enumerate(DASHBOARD["panels"]) if panel["type"] == "row"]


def _panels(row: int) -> int:
    """Return how many panels that row has."""
    bounds = [*_rows(), len(DASHBOARD["panels"])]
    return bounds[row + 1] - bounds[row] - 1


if __name__ == "__main__":
    main()
