"""The whole name server on one machine: the order of its start, and its readiness."""

import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
from rq import Worker
from rq.cron import CronScheduler

from access import start_check
from metrics import files as metric_files
from mqnamesrv import children
from mqnamesrv.child import Child
from mqnamesrv.fork import Fork
from mqnamesrv.gunicorn_common import STOP_AFTER_DRAIN_S
from mqnamesrv.listeners import bind, claim, listens, port_of, reachable
from mqnamesrv.readiness import http_answers, registered
from mqnamesrv.remoting_readiness import remoting_answers
from mqnamesrv.shared_settings import SharedSettings
from mqnamesrv.store import EmbeddedStore, StoreFailed, await_answer
from mqnamesrv.supervisor import Signals, Stopped, Supervisor
from registry.options.catalogue import Options, computed, to_env
from registry.store.check import refusal
from registry.store.connect import connect

GRACE_OVER_GUNICORN_S = 2
HTTP_GRACE_S = 5
JOBS_GRACE_S = 10

log = logging.getLogger(__name__)


def serve(options: Options, given: Mapping[str, str], config_file: Path | None) -> None:
    """Run until SIGINT or SIGTERM; everything started here is gone when this returns or raises.

    Raises PortUnavailable, StoreFailed, StartFailed, KVFileInvalid or RegistryError when the start fails.
    """
    with ExitStack() as stack, Signals() as signals:
        stack.enter_context(metric_files.prepared(os.environ))
        remoting_listener = stack.enter_context(
            bind(
                options.bind_address,
                options.listen_port,
                send_buffer=options.server_socket_snd_buf_size,
                receive_buffer=options.server_socket_rcv_buf_size,
            )
        )
        http_listener = stack.enter_context(bind(options.http_bind_address, options.http_port))
        claims = stack.enter_context(ExitStack())
        for listener in (remoting_listener, http_listener):
            claims.enter_context(claim(listener))
        options = msgspec.structs.replace(
            options, listen_port=port_of(remoting_listener), http_port=port_of(http_listener)
        )
        if not options.check_address:
            own = f"{reachable(options.bind_address)}:{options.listen_port}"
            options = computed(options, {"check_address": own})
        embedded, options, store_name = _store(options, signals)
        if embedded:
            stack.callback(embedded.stop)
        connection = stack.enter_context(connect(options.redis_url, options.namespace))
        if refused := refusal(connection, allow_evicting=options.allow_evicting_store):
            raise StoreFailed(f"the store: {refused}")
        shared = SharedSettings(connection, options, config_file)
        shared.announce(given)
        if shared.import_kv():
            log.info("KV taken over from %s", options.kv_config_path)
        with Supervisor(signals, partial(start_check.refusal, options)) as supervisor:
            if embedded:
                supervisor.watch(embedded.child)
            try:
                checks = _start(supervisor, options, remoting_listener, http_listener)
                supervisor.wait_ready(checks)
                claims.close()
                _announce(options, store_name)
                supervisor.run(shared.follow)
            except Stopped:
                remoting_listener.close()  # the workers alone decide now how long the ports stay open
                http_listener.close()


def _store(options: Options, signals: Signals) -> tuple[EmbeddedStore | None, Options, str]:
    """Return the store if it is embedded, and started; the options that name it; its name for people."""
    if options.redis_url:
        return None, options, await_answer(options.redis_url, options.namespace, tick=signals.check)
    embedded = EmbeddedStore(Path(options.data_dir))
    embedded.start(signals.check)
    urls = [name for name in ("redis_url", "rq_redis_url") if not getattr(options, name)]
    return embedded, computed(options, dict.fromkeys(urls, embedded.url)), f"{embedded.name} (embedded)"


def _start(
    supervisor: Supervisor, options: Options, remoting: socket.socket, http: socket.socket
) -> dict[str, Callable[[], bool]]:
    """Start all children; return the checks of their readiness."""
    env = to_env(options)

    def keep(name: str, how: Fork, grace_s: float, reload: signal.Signals) -> Child:
        child = Child(name, how, grace_s=grace_s, reload=reload)
        supervisor.keep(child)
        return child

    remoting_grace_s = options.shutdown_wait_time_seconds + STOP_AFTER_DRAIN_S + GRACE_OVER_GUNICORN_S
    keep("remoting", children.gunicorn("remoting", remoting, env), remoting_grace_s, signal.SIGHUP)
    keep("http", children.gunicorn("http", http, env), HTTP_GRACE_S + GRACE_OVER_GUNICORN_S, signal.SIGHUP)
    jobs = keep("rq worker", children.job_worker(env), JOBS_GRACE_S, signal.SIGTERM)
    scheduler = keep("scheduler", children.job_scheduler(env), JOBS_GRACE_S, signal.SIGTERM)
    return {
        "remoting": lambda: listens(remoting) and remoting_answers(options),
        "http": lambda: listens(http) and http_answers(options),
        "rq worker": registered(Worker, jobs, options.rq_redis_url),
        "scheduler": registered(CronScheduler, scheduler, options.rq_redis_url),
    }


def _announce(options: Options, store_name: str) -> None:
    """Print Java's line and the `ready` line with the real ports (RocketMQ NamesrvStartup)."""
    remoting = f"{options.bind_address}:{options.listen_port}"
    print(f"The Name Server boot success. serializeType={options.serialize_type}, address {remoting}")
    http = f"{options.http_bind_address}:{options.http_port}"
    print(f"ready remoting={remoting} http={http} store={store_name}", flush=True)
