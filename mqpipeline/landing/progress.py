"""How far a landing has come: one small file, replaced after each batch, that says which batches there are."""

import msgspec
from pyspark.sql import SparkSession

from mqpipeline import files
from mqpipeline.source.ids import Id, parsed

FILE = "_progress.json"


class StreamProgress(msgspec.Struct, frozen=True):
    """Of one stream: the entry that was landed last (`inc` and `seq` where it has them); everything that happened
    before `as_of_ms` of the Redis clock has landed; entries landed, repeats included; of these rejected; how often
    entries were missing before a batch, and how often reading started over because a primary was lost."""

    namespace: str
    id: str = "0-0"
    inc: int | None = None
    seq: int | None = None
    as_of_ms: int = 0
    entries: int = 0
    rejected: int = 0
    holes: int = 0
    rereads: int = 0

    @property
    def at(self) -> Id:
        return parsed(self.id)


class Progress(msgspec.Struct, frozen=True):
    """Batches 1 to `batch` have landed."""

    batch: int = 0
    streams: dict[str, StreamProgress] = {}

    @property
    def as_of_ms(self) -> int:
        """Of all streams together."""
        return min((stream.as_of_ms for stream in self.streams.values()), default=0)


def read_progress(spark: SparkSession, folder: str) -> Progress:
    """Of a landing's folder; an empty one before the first batch."""
    text = files.read_text(spark, f"{folder}/{FILE}")
    return msgspec.json.decode(text, type=Progress) if text else Progress()


def write_progress(spark: SparkSession, folder: str, progress: Progress) -> None:
    """In one step: from now on readers find its batches."""
    files.write_text_atomically(spark, f"{folder}/{FILE}", msgspec.json.encode(progress).decode())
