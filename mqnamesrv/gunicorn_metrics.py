"""gunicorn's settings of the exporter: `gunicorn -c python:mqnamesrv.gunicorn_metrics api.exporter:app`."""

import os
from typing import Any

from mqnamesrv.gunicorn_common import *  # noqa: F403
from registry.options.load import load

_options = load(os.environ)

bind = f"{_options.http_bind_address}:{_options.metrics_port}"
worker_class = "api.server.ExporterWorker"
workers = 1
threads = 2
graceful_timeout = 1
proc_name = "mqnamesrv-metrics"
on_starting = check_options  # noqa: F405


def child_exit(server: Any, worker: Any) -> None:  # type: ignore[no-redef]
    """Called by gunicorn in the master: leave the files, they are of processes of another container."""
