"""The application factory: one blueprint a subject."""

import os
from typing import Any

import redis as redis_py
from apiflask import APIFlask

from access.live import follow_stored
from api import (
    audit,
    brokers,
    clusters,
    compression,
    conditions,
    cross_site,
    discovery,
    docs_page,
    doctor,
    drains,
    drift,
    dry_run,
    dry_run_answers,
    events,
    guard,
    health,
    history,
    hold,
    kv,
    limits,
    metrics,
    mirror,
    openapi,
    options,
    path_names,
    principals,
    problems,
    rate_limits,
    registrations,
    repairs,
    reports,
    routes,
    settings,
    topics,
    watch,
)
from api.allowed_hosts import AllowedHosts
from api.console import app as console
from api.counters import COUNTERS, count_requests
from api.json_text import StrictJSON
from api.name_server import EXTENSION, PROBE_TIMEOUT_S, NameServer, own_origin
from api.name_server_lists import EXTENSION as NAME_SERVER_LISTS
from api.name_server_lists import NameServerLists
from api.trusted_proxies import TrustedProxies
from metrics.store import StoreMetrics
from registry.drivers import Observe
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.options.load import load
from registry.store.connect import connect, connect_once

SUBJECTS = (
    docs_page,
    health,
    metrics,
    discovery,
    clusters,
    brokers,
    registrations,
    mirror,
    drains,
    topics,
    routes,
    kv,
    settings,
    hold,
    events,
    watch,
    audit,
    repairs,
    limits,
    options,
    principals,
    doctor,
    drift,
    reports,
    history,
)


def create_app(options: Options | None = None, *, redis: "redis_py.Redis | None" = None) -> APIFlask:
    """Return the Flask application of the HTTP API; without `options`, those of the environment.

    Tests pass their own Redis client, which decodes replies. Raises ValueError without a store's address."""
    options = options or load(os.environ)
    no_files: Any = None  # which APIFlask takes but does not declare
    app = APIFlask(
        "api",
        title="redis-namesrv",
        version="v1",
        docs_path=None,
        json_errors=False,
        static_folder=no_files,
    )
    app.json = StrictJSON(app)
    app.url_map.merge_slashes = False  # no redirects, and a path with an empty part is none of ours
    app.url_map.converters = {"default": path_names.Name, "path": path_names.Key}
    app.wsgi_app = path_names.RawPaths(app.wsgi_app)  # type: ignore[method-assign]
    app.wsgi_app = TrustedProxies(app.wsgi_app, options)  # type: ignore[method-assign]
    app.wsgi_app = AllowedHosts(app.wsgi_app, options, COUNTERS.refused)  # type: ignore[method-assign]
    app.config |= {
        "MAX_CONTENT_LENGTH": options.http_body_max_bytes,
        "HTTP_ERROR_SCHEMA": problems.REFERENCE,
        "VALIDATION_ERROR_SCHEMA": problems.REFERENCE,
    }
    server = app.extensions[EXTENSION] = NameServer(
        Keys(options.namespace),
        redis or connect(options.redis_url, options.namespace),
        redis or connect_once(options.redis_url, options.namespace, PROBE_TIMEOUT_S),
        options,
        _traced(app, options),
    )
    app.extensions[metrics.EXTENSION] = StoreMetrics(server.keys, options, server.run_probe)
    app.extensions[NAME_SERVER_LISTS] = NameServerLists(server)
    count_requests(app)
    cross_site.install(app)
    console.install(app, server)
    guard.install(
        app,
        options,
        lambda take: server.run_probe(follow_stored(server.keys, take, own_origin())),
        lambda records: server.run_probe(records.write(server.keys, own_origin())),
    )
    watch.install(app, server)
    dry_run.install(app)
    rate_limits.install(app, options)
    problems.install(app)
    conditions.install(app)
    compression.install(app)
    dry_run_answers.install(app)  # answers before they are compressed
    for subject in SUBJECTS:
        app.register_blueprint(subject.bp)
    app.register_blueprint(console.bp)
    app.servers = openapi.SERVERS
    app.spec_processor(openapi.completed)
    return app


def _traced(app: APIFlask, options: Options) -> Observe:
    """Return what observes round trips to the store; have requests be spans if the options say so."""
    if options.traces:
        from traces.process import begin

        if (tracer := begin(options, "http")) is not None:
            from api.spans import trace_requests
            from traces.store import observing

            trace_requests(app, tracer)
            return observing(tracer, COUNTERS.observe)
    return COUNTERS.observe
