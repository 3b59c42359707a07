"""What the supervisor's children run. This imports what they share, so that their forks need not."""

import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from gunicorn.app import wsgiapp
from gunicorn.config import Chdir

import worker.server  # noqa: F401  # gunicorn loads it by its name
from mqnamesrv.fork import Fork
from worker.jobs import rq_worker, scheduler

ROOT = Path(__file__).resolve().parent.parent  # where the packages and wsgi.py lie
# gunicorn goes there before it has read any setting, and imports from there first; its own default is the folder in
# which `mqnamesrv` was started, where another wsgi.py may lie
Chdir.default = str(ROOT)


def gunicorn(side: str, listener: socket.socket, env: Mapping[str, str]) -> Fork:
    """Return the gunicorn of a side, `remoting` or `http`, whose workers accept from this listener."""
    fd = listener.fileno()
    argv = ("gunicorn", "-c", f"python:mqnamesrv.gunicorn_{side}", "-b", f"fd://{fd}", "wsgi:app")
    return Fork(partial(wsgiapp.run, prog="gunicorn"), argv, env, (fd,), ROOT)


def job_worker(env: Mapping[str, str]) -> Fork:
    """Return the worker of RQ's queues."""
    return Fork(rq_worker.main, ("worker.jobs.rq_worker",), env, (), ROOT)


def job_scheduler(env: Mapping[str, str]) -> Fork:
    """Return the scheduler of RQ's jobs."""
    return Fork(scheduler.main, ("worker.jobs.scheduler",), env, (), ROOT)
