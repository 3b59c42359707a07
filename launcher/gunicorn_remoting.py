"""gunicorn's settings of the remoting workers: `gunicorn -c python:launcher.gunicorn_remoting wsgi:app`."""

import os

from launcher.gunicorn_common import *  # noqa: F403
from registry.configuration import load

_options = load(os.environ)

bind = f"{_options.bind_address}:{_options.listen_port}"
backlog = _options.server_socket_backlog
worker_class = "worker.server.RemotingWorker"
workers = _options.remoting_workers
graceful_timeout = _options.shutdown_wait_time_seconds + STOP_AFTER_DRAIN_S  # noqa: F405
proc_name = "mqnamesrv-remoting"
