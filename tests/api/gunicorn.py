"""gunicorn with HTTP workers, as `make run` starts it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from registry.options.catalogue import Options, to_env
from testbed.needs import need

ROOT = Path(__file__).parents[2]


@contextmanager
def http_workers(store_url: str, workers: int = 2, **options: Any) -> Iterator[str]:
    """Yield `host:port` of HTTP workers before their first request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"fd://{listener.fileno()}"
        argv = ["-c", "python:mqnamesrv.gunicorn_http", "--bind", bind, "-w", str(workers), "wsgi:app"]
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *argv],
            cwd=ROOT,
            env=os.environ | to_env(Options(redis_url=store_url, **options)),
            pass_fds=[listener.fileno()],
        )
        try:
            host, port = listener.getsockname()
            yield f"{host}:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0


def curl(*arguments: str) -> tuple[int, str]:
    """Return status and body."""
    need("curl")
    done = subprocess.run(
        ["curl", "-s", "--noproxy", "*", "-w", "\n%{http_code}", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body
