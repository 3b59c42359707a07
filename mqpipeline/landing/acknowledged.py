"""Up to where a stream has landed by what the store says, which may be more than a damaged log knows."""

from collections.abc import Callable

from mqpipeline.landing.kinds import EVENTS_LAND, Landed
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.consumers import Consumer
from pyspark_redis_stream.ids import BEFORE_ALL, Id
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import Streams

Acknowledged = Callable[[str], Id]
"""Returns the id up to which a namespace's entries were acknowledged."""


def nothing_known(_: str) -> Id:
    """Where the store is not asked."""
    return BEFORE_ALL


def acknowledged(url: str, consumer: str, landed: Landed, namespace: str) -> Id:
    """Return up to where the pipeline of this name acknowledged a stream; BEFORE_ALL without a URL, and of heartbeats,
    which have no consumer. Raises what the store's client raises."""
    if not url or landed is not EVENTS_LAND:
        return BEFORE_ALL
    stream = landed.stream(namespace)
    source = options_of({"url": url, "streams": stream, "retrySeconds": "0"})
    with Store(source) as store:
        of = Consumer(store, Streams(source, store), f"pipeline:{consumer}", source.consumer_key)
        return of.acknowledged(stream)
