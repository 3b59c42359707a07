"""Without the option nothing of traces is imported, and the objects on a request's way are the same as ever.

redis-py imports OpenTelemetry's metrics wherever they are installed, which is its own matter."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("traces", "worker.traced_service", "worker.jobs.traced_jobs", "api.spans")
THEIRS = (
    "opentelemetry.sdk.trace",
    "opentelemetry.exporter",
    "google.protobuf",
    "requests",
)
LOADED = f"sorted(set({OURS + THEIRS}) & sys.modules.keys())"
OFF = f"""
import asyncio, sys
import fakeredis
import worker.jobs.rq_worker
from api.app import create_app
from api.counters import COUNTERS
from api.name_server import EXTENSION
from mqnamesrv import gunicorn_http
from registry.drivers import AsyncDriver
from registry.options.catalogue import Options
from worker.answering import Answering
from worker.jobs.job_process import COMMANDS, observer
from worker.server import RemotingWorker
from worker.service import Service

async def service():
    return RemotingWorker.make_service(None, Options(redis_url='redis://127.0.0.1:1'), 'w1')

made = asyncio.run(service())
assert (type(made), type(made.parts.driver), type(made._answering)) == (Service, AsyncDriver, Answering)
app = create_app(Options(), redis=fakeredis.FakeRedis(decode_responses=True))
assert app.test_client().get('/healthz').status_code == 200
assert app.extensions[EXTENSION].observe == COUNTERS.observe
assert observer(Options()) is COMMANDS
gunicorn_http.worker_exit(None, None)
print({LOADED})
"""
WITHOUT_THE_EXTRA = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format='%(message)s')
sys.meta_path.insert(0, type('Absent', (), {'find_spec': staticmethod(refuse)}))
from registry.options.catalogue import Options
from traces.process import begin, end
assert begin(Options(traces=True), 'http') is None
end()
"""
REFUSE = """
def refuse(name, *_):
    if name.split('.')[0] == 'opentelemetry':
        raise ModuleNotFoundError(f'No module named {name!r}', name=name)
"""


def _printed_by(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_off_imports_nothing() -> None:
    assert _printed_by(OFF) == "[]"


@pytest.mark.parametrize("script", [REFUSE + WITHOUT_THE_EXTRA])
def test_without_the_extra_a_line_says_so(script: str) -> None:
    text = "no spans are recorded, since opentelemetry is missing; install redis-namesrv[otel]"
    assert _printed_by(script) == text
