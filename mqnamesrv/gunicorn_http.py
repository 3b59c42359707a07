"""gunicorn's settings of the HTTP workers: `gunicorn -c python:mqnamesrv.gunicorn_http wsgi:app`."""

import os

from mqnamesrv.gunicorn_common import *  # noqa: F403
from registry.options.load import load

_options = load(os.environ)

bind = f"{_options.http_bind_address}:{_options.http_port}"
worker_class = "api.server.HttpWorker"
workers = _options.http_workers
threads = _options.http_threads
graceful_timeout = 5  # slow peers come back to the next worker
sendfile = False  # answers are written by the worker's loop
accesslog = "-" if _options.access_log else None
_user = ' "%({remote_user}e)s"' if _options.http_user_header else ""
access_log_format = f'%(h)s{_user} "%(r)s" %(s)s %(B)s bytes %(M)s ms "%(a)s"'
proc_name = "mqnamesrv-http"
on_starting = check_options  # noqa: F405
