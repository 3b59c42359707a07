"""gunicorn's settings of the remoting workers: `gunicorn -c python:mqnamesrv.gunicorn_remoting wsgi:app`."""

import os
from typing import Any

from redis.exceptions import RedisError

from mqnamesrv.gunicorn_common import *  # noqa: F403
from registry.options.load import load
from registry.store.check import refusal, warnings
from registry.store.connect import ASK_TIMEOUT_S, connect_once

_options = load(os.environ)

bind = f"{_options.bind_address}:{_options.listen_port}"
backlog = _options.server_socket_backlog
worker_class = "worker.server.RemotingWorker"
workers = _options.remoting_workers
graceful_timeout = _options.shutdown_wait_time_seconds + STOP_AFTER_DRAIN_S  # noqa: F405
proc_name = "mqnamesrv-remoting"


def on_starting(server: Any) -> None:
    """Called by gunicorn in the master: check the options, and what should be changed about the store, which is logged.
    RuntimeError ends the start."""
    check_options(server)  # noqa: F405
    refused = None
    try:
        with connect_once(_options.redis_url, _options.namespace, ASK_TIMEOUT_S) as store:
            refused = refusal(store, allow_evicting=_options.allow_evicting_store)
            sentences = warnings(store)
    except RedisError as error:
        sentences = [f"not checked: {error}; workers retry, see redisUrl"]
    if refused:
        raise RuntimeError(f"the store: {refused}")
    for text in sentences:
        server.log.warning("the store: %s", text)
