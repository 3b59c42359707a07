"""Up to where a stream has landed by what the store says, which may be more than a damaged log knows."""

from collections.abc import Callable

from mqpipeline.landing.kinds import EVENTS_LAND, Landed
from mqpipeline.landing.progress import StreamProgress
from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.consumers import Consumer
from pyspark_redis_stream.ids import BEFORE_ALL, Id
from pyspark_redis_stream.options import options_of
from pyspark_redis_stream.streams import Entry, Streams

Acknowledged = Callable[[StreamProgress], Id]
"""Returns the id up to which entries of a stream were acknowledged, of which this has landed."""


def nothing_known(_: StreamProgress) -> Id:
    """Where the store is not asked."""
    return BEFORE_ALL


def is_other_incarnation(newest: Entry, position: StreamProgress) -> bool:
    """Whether the stream is another one than has landed last: then ids of both say nothing of each other."""
    there = newest.number(b"inc")
    return position.inc is not None and there is not None and there != position.inc


def acknowledged(url: str, consumer: str, landed: Landed, position: StreamProgress) -> Id:
    """Return up to where the pipeline of this name acknowledged a stream; BEFORE_ALL without a URL, of heartbeats,
    which have no consumer, and of another incarnation. Raises what the store's client raises."""
    if not url or landed is not EVENTS_LAND:
        return BEFORE_ALL
    stream = landed.stream(position.namespace)
    source = options_of({"url": url, "streams": stream, "retrySeconds": "0"})
    with Store(source) as store:
        streams = Streams(source, store)
        newest = streams.newest(stream)
        if newest is not None and is_other_incarnation(newest, position):
            return BEFORE_ALL
        return Consumer(store, streams, f"pipeline:{consumer}", source.consumer_key).acknowledged(stream)
