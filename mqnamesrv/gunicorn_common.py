"""Settings of both kinds of gunicorn."""

import gc
import os
import sys
from typing import Any

from access import start_check
from metrics import files as metric_files
from registry.options.catalogue import OPTIONS_VARIABLE
from registry.options.load import load
from registry.options.load import warnings as options_without_effect
from worker.logs.log_lines import one_line

# No setting of gunicorn's: what a remoting worker needs behind shutdownWaitTimeSeconds.
STOP_AFTER_DRAIN_S = 3

control_socket_disable = True  # gunicorn 27 opens one in the home directory
accesslog: str | None = None
loglevel = "warning"
logger_class = "worker.logs.gunicorn_log.GunicornLog"
# By default a peer on loopback, as the clients of a proxy there are, could have another path answered than a proxy saw.
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}
timeout = 30
if os.access("/dev/shm", os.W_OK):
    worker_tmp_dir = "/dev/shm"  # workers report to their master by touching a file; a disk may block them


def check_options(server: Any) -> None:
    """Called by gunicorn in the master (`on_starting`): end a start that rules of access forbid, with their exit code;
    log which of the given options have no effect or open doors."""
    options = load(os.environ)
    if reason := start_check.refusal(options):
        print(f"gunicorn: {one_line(reason)}", file=sys.stderr)
        sys.exit(start_check.EXIT_CODE)
    for text in options_without_effect(os.environ):
        server.log.warning("the options: %s", text)
    if OPTIONS_VARIABLE not in os.environ:  # else a supervisor has logged them
        for text in start_check.warnings(options):
            server.log.warning("access: %s", text)


def when_ready(server: Any) -> None:
    """Called by gunicorn in the master before it forks: workers neither look through nor copy what it has loaded."""
    gc.freeze()


def worker_exit(server: Any, worker: Any) -> None:
    """Called by gunicorn in a worker that ends: export the spans that are left."""
    if load(os.environ).traces:
        from traces.process import end

        end()


def child_exit(server: Any, worker: Any) -> None:
    """Called by gunicorn in the master when a worker has ended: drop what metrics say it has."""
    metric_files.tidy()
