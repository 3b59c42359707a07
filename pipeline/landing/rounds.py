"""Asking the name server for a checkpoint round: that it tells its tables anew, for who lacks entries."""

import json

from pipeline.source.connection import Store
from pipeline.source.streams import Streams


def ask_for_round(store: Store, streams: Streams, stream: str, actor: str) -> None:
    """Of the namespace of this event stream. Whoever asks again before it begins gets the same round."""
    asked = {"at_ms": streams.now_ms(stream), "actor": actor}
    store.call("HSET", f"{stream}:asked", "request", json.dumps(asked, separators=(",", ":")))
