"""Requests a checkpoint round of the name server, which writes its tables to the stream again."""

import json

from pyspark_redis_stream.connection import Store
from pyspark_redis_stream.streams import Streams


def request_checkpoint(store: Store, streams: Streams, stream: str, actor: str) -> None:
    """Request a round of the namespace of this event stream; requests before it begins get the same round."""
    request = {"at_ms": streams.now_ms(stream), "actor": actor}
    store.call("HSET", f"{stream}:asked", "request", json.dumps(request, separators=(",", ":")))
