"""A made-up history in a real stream, to try things on."""

import time
from collections.abc import Iterable
from itertools import takewhile
from typing import Annotated, Any

import typer

from mqpipeline.cli.common import WRONG_USAGE, errors_as_lines, stop
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.options import ALL, NAMESPACE
from mqpipeline.scale import WEEK_MS, Entry, Scale, entries
from pyspark_redis_stream.connection import Client, Store
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.url import parse

AT_ONCE = 500

Url = Annotated[str, typer.Option("--url", envvar="REDIS_URL", help="The Redis to write to")]
Namespace = Annotated[str, typer.Option("--namespace", help="Its stream must not exist yet")]
Brokers = Annotated[int, typer.Option("--brokers", min=1)]
Topics = Annotated[int, typer.Option("--topics", min=1)]
Weeks = Annotated[int, typer.Option("--weeks", min=1, max=520, help="Up to now")]
Seed = Annotated[int, typer.Option("--seed", help="Equal seeds make equal histories")]


def add(app: typer.Typer) -> None:
    """The command `sample`."""
    app.command()(sample)


def sample(
    url: Url,
    namespace: Namespace = "sample",
    brokers: Brokers = 24,
    topics: Topics = 300,
    weeks: Weeks = 6,
    seed: Seed = 1,
) -> None:
    """Write the events that so many brokers and topics could have caused."""
    now_ms = int(time.time() * 1000)
    scale = Scale(
        brokers=brokers,
        topics=topics,
        brokers_of_topic=min(4, brokers),
        weeks=weeks,
        clusters=2,
        namespace=namespace,
        start_ms=now_ms - weeks * WEEK_MS,
        seed=seed,
    )
    stream = EVENTS_LAND.stream(namespace)
    try:
        parse(url)
        source = options_of({"url": url, "streams": stream, "retrySeconds": "0"})
    except ValueError as error:
        stop(f"--url: {error}", WRONG_USAGE)
    if not NAMESPACE.fullmatch(namespace) or namespace == ALL:
        stop(
            f"--namespace: {namespace!r} is not of letters, digits, dots, dashes and underscores", WRONG_USAGE
        )
    with errors_as_lines(), Store(source) as store:
        if store.call("EXISTS", stream):
            stop(
                f"{stream} exists, and may be a real history; name another with --namespace, or delete it",
                WRONG_USAGE,
            )
        happened = takewhile(lambda entry: entry.id_ms <= now_ms, entries(scale))
        count = write(store.client, stream, happened)
    print(f"{count} events are in {stream}; for reports: mqpipeline run --url … -w … --namespace {namespace}")


def write(client: Client, stream: str, events: Iterable[Entry]) -> int:
    """Append entries to a stream, in their order; how many there were."""
    count, pipe = 0, client.pipeline(transaction=False)
    for count, entry in enumerate(events, 1):
        fields: Any = entry.fields
        pipe.xadd(stream, fields, id=f"{entry.id_ms}-{entry.id_n}")
        if count % AT_ONCE == 0:
            pipe.execute()
    pipe.execute()
    return count
