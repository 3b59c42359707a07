"""The pipeline's reports as they are served (mqpipeline/serving); nothing here makes one."""

from typing import Any, Final

import msgspec

from registry.clock import TIME, unix_ms
from registry.keys import Keys
from registry.plans import Batch, Call, Plan, call
from rocketmq_remoting.typed import converted

IDENTITY: Final = ("run", "published_ms")
"""By which reports are known: the number of a run comes again in another warehouse, or in one that was deleted."""


class Meta(msgspec.Struct, frozen=True):
    """The run that made the reports, and what it saw of the stream: the columns of the pipeline's table report_health
    (docs/pipeline-tables.md). `left_out`: entries that were too many to serve; `names`: those of its keys, parted by
    blanks; `published_ms`: when they were put in force, by the Redis clock. None is what a pipeline of release 0.1 does
    not say, or, of a checkpoint, what no run has compared."""

    run: str
    as_of_ms: int
    took_ms: int
    events: int
    holes: int
    phantoms: int
    rejected: int
    provisional: bool
    left_out: int
    names: str
    repeats: int | None = None
    unknown: int | None = None
    incomplete: int | None = None
    waiting: int | None = None
    incarnations: int | None = None
    round_ms: int | None = None
    proves: bool | None = None
    members_differing: int | None = None
    pairs_differing: int | None = None
    published_ms: int | None = None

    def windows(self, report: str) -> tuple[str, ...]:
        """Return the windows of a report that has one key for each."""
        prefix = f"{report}:"
        return tuple(name.removeprefix(prefix) for name in self.names.split() if name.startswith(prefix))


class Served(msgspec.Struct, frozen=True):
    """What was read of one run, at this time of the Redis clock."""

    meta: Meta
    now_ms: int
    replies: list[Any]


def served(keys: Keys, *reads: Call) -> Plan[Served | None]:
    """Replies that are all of one run; None if none is in force."""
    meta_key = keys.report("meta")
    around = call("HGETALL", meta_key), TIME
    while True:  # runs are minutes apart: one that comes between is followed by none
        meta, time, *replies, again = yield Batch((*around, *reads, call("HMGET", meta_key, *IDENTITY)))
        if [meta.get(name) for name in IDENTITY] != again:
            continue
        if not meta:
            return None
        return Served(converted(meta, Meta, strict=False), unix_ms(time), replies)
