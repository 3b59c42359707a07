"""What each column of the warehouse means: docs/pipeline-columns.md is written of it, and a test wants every one.

A name means the same in all tables; where it does not, it stands with its table."""

import re
from collections.abc import Iterator
from typing import Final

from mqpipeline.schemas import Table

MEANINGS: Final = {
    # where an entry is, and what of it
    "namespace": "name server (key space) that it is of",
    "inc": "incarnation of the event stream: when it began (ms)",
    "seq": "number of the entry in its incarnation, from 1 on without gaps",
    "id_ms": "first part of the entry's id: when it was recorded, by the Redis clock",
    "id_n": "second part: a number among those of the same ms",
    "batch": "number of the landing's batch that brought it",
    "fields": "fields of the entry that no column has, as text",
    # entries
    "v": "version of the entry's form",
    "kind": "what changed (docs/events.md)",
    "cause": "why it changed",
    "op": "the request or run of a job that changed it; the same of all entries of one",
    "actor": "which client, operator or job did it",
    "peer": "the other end of its connection, if the actor does not say it",
    "part_i": "place of the entry in its group, from 1 on",
    "part_n": "how many entries the group has",
    "effective_ms": "when lookups ceased to show it; before the record of an expiry",
    "lease_ms": "when the member's lease ends, or would have",
    "since_ms": "when the member had come to its slot",
    "code": "request that the heartbeat came with",
    # brokers and routes
    "cluster": "cluster of the broker",
    "broker": "broker name",
    "broker_id": "id of the member: 0 is the master",
    "addr": "address of the member, host:port",
    "epoch": "number of the broker's registration from nothing: topics are of one epoch",
    "topic": "topic",
    "read_queues": "queues to read",
    "write_queues": "queues to write",
    "perm": "permissions: 4 read, 2 write, 1 inherit",
    "sys_flag": "topicSysFlag, as RocketMQ has it",
    "zone": "zone of the broker, null without one",
    "acting": "whether a slave acts as master when it has none",
    "drain": "drain by an operator: owner, reason, until when; null without one",
    "drained": "whether the broker was drained then",
    "last_seen_ms": "last heartbeat",
    "closed_ms": "when its connection was closed, null if it was not or is not known",
    # intervals
    "from_id": "entry that it began with",
    "from_ms": "when it began",
    "from_cause": "why it began",
    "from_actor": "actor of that entry",
    "from_op": "operation of that entry",
    "to_id": "entry that ended it, null without one",
    "to_ms": "when it ended, null while it lasts",
    "to_cause": "why it ended",
    "to_actor": "actor of that entry",
    "from_seq": "first missing number",
    "to_seq": "last missing number",
    "start_id": "entry that it began with",
    "start_ms": "when it began",
    "start_cause": "why it began, null if its registration is not known",
    "end_id": "entry that ended it, null without one",
    "end_ms": "when it ended, null while it lasts",
    "end_cause": "why it ended",
    "recorded_ms": "when its end was recorded",
    "left_censored": "whether it began before the history that is known",
    "open": "whether it lasts",
    "type": "which kind of it",
    # runs
    "run": "number of the run",
    "as_of_ms": "until when its reports go",
    "as_of": "until when what it is made of was known (ms)",
    "final_ms": "windows that ended by then are closed, and not computed again",
    "finished_ms": "when it ended",
    "folded": "by namespace: last entry that the tables know, last batch read, whether history before is whole",
    "versions": "version of each derived table's log that is of this run",
    "files": "a hash of the paths of each table's files",
    "rows": "how many rows each derived table has then",
    # windows and units
    "window": "`1h`, `24h`, `7d`, `30d`, `day`, `month`, `hour` or `now`",
    "unit": "`cluster:<c>`, `broker:<c>:<b>`, `slot:<c>:<b>:<id>` or `topic:<t>`",
    "provisional": "whether it may still change, because an expiry can be recorded late",
    # availability
    "up_ms": "time UP",
    "down_ms": "time DOWN",
    "planned_ms": "time absent on purpose",
    "unknown_ms": "time of which nothing is known",
    "availability": "up / (up + down), null without both",
    "weighted": "of topics: the same, each broker weighted by its write queues",
    "outages": "how often it was DOWN in the window",
    "mtbf_ms": "mean time UP between outages",
    "mttr_ms": "mean time DOWN of an outage",
    "worst": "of brokers: least availability of any 5 minutes, 1 and 6 hours in the window",
    "slo": "objective of its availability",
    "budget_ms": "time DOWN that the objective allows",
    "spent_ms": "time DOWN",
    "remaining": "share of the budget that is left, negative once it is overspent",
    "burn": "by time before the window's end: how many times as fast as allowed the budget was spent",
    "alerts": "burn rates that both of their times are over",
    # detection and repair
    "n": "deaths that a time is known of",
    "p50_ms": "median",
    "p90_ms": "90th percentile",
    "p95_ms": "95th percentile",
    "p99_ms": "99th percentile",
    "p999_ms": "99.9th percentile",
    "max_ms": "longest",
    "lower_p50_ms": "median of the least that it can have been",
    "without_last_seen": "deaths that no time is known of",
    "censored": "brokers that are silent for longer than their timeout and still there",
    "record_delay_p95_ms": "from the end of a lease to its record, 95th percentile",
    "record_delay_max_ms": "the same, longest",
    "n_open": "outages without a known end",
    # flapping, changes, skew
    "score": "flap score at the window's end, at most 12,000",
    "flapping": "whether it flaps then: over 2,000 until below 750",
    "flapping_since_ms": "since when, null if it does not",
    "episodes": "how often it began to flap in the window",
    "acts": "operations",
    "pairs": "topics on brokers that they touched",
    "changes": "operations that changed it or a broker that has it",
    "queues_max_to_mean": "write queues by broker: the greatest over the mean",
    "queues_gini": "the same: Gini coefficient",
    "topics_max_to_mean": "topics by broker: the greatest over the mean",
    "topics_gini": "the same: Gini coefficient",
    "brokers": "how many brokers are compared",
    # incidents, conflicts, heartbeats
    "key": "what tells it from others of its type and time",
    "share": "of the members that were UP just before",
    "clusters": "clusters of the members",
    "causes": "members by the first cause of each",
    "restored_ms": "when 90 % of them were back, null if they are not",
    "ids": "entries of the removals",
    "count": "how many",
    "last_ms": "when the last one was",
    "detail": "the last one, as JSON",
    "gaps": "times between two heartbeats",
    "missed": "heartbeats that did not come",
    "suggested_timeout_ms": "broker timeout that these suggest, null with fewer than 1,000",
    # health
    "entries": "entries that have landed, repeats included",
    "repeats": "entries that had been read before",
    "phantoms": "entries of a lost primary, which never happened",
    "unknown": "entries of kinds or versions that this release does not know",
    "incomplete": "entries of groups of which parts are missing",
    "waiting": "entries behind the last one that the tables know",
    "missing": "entries that were never read",
    "incarnations": "how often the stream began again",
    "round": "newest checkpoint round that was compared",
    "round_ms": "when it ended",
    "proves": "whether history was whole before it, so that a difference is a defect",
    "members": "members that it lists",
    "members_differing": "members that differ from the tables",
    "pairs_differing": "topics on brokers that differ from the tables",
    # partitions
    "day": "folder: UTC day of `id_ms`",
    "month": "folder: UTC month of its end or start, `open` while it lasts",
    "bucket": "folder: CRC-32 of the topic, modulo 64",
}
HERE: Final = {
    ("events", "rows"): "queue data before and after, by broker, of topics that share both",
    ("events", "topics"): "how many topics the entry is about",
    ("events", "rejected"): "null, or what of the entry cannot be read: text, version, missing, number, rows",
    ("runs", "as_of"): "until when each namespace is known",
    ("report_health", "rejected"): "entries of which a field could not be read",
    ("report_health", "pairs"): "topics on brokers that the round lists",
    ("incidents", "members"): "how many members were gone",
    ("gaps", "from_ms"): "last entry before",
    ("gaps", "to_ms"): "first entry after",
    ("report_churn", "unit"): "`<cluster>:<cause>`",
}
"""What a column of one table means that has another meaning elsewhere."""


_COLUMN: Final = re.compile(r"(\w+) ([^,<]+(?:<.*?>+)?)(?:,|$)")


def columns(table: Table) -> Iterator[tuple[str, str]]:
    """Yield name and type of each column, those of the table's folders last; without Java, which Spark needs for it."""
    yield from _COLUMN.findall(" ".join(table.columns.split()))
    for partition in table.partitions:
        if partition.sql != partition.name:
            yield partition.name, partition.type


def meaning(table: str, column: str) -> str:
    """Return what a column of a table means. Raises KeyError for one without a meaning."""
    return HERE.get((table, column)) or MEANINGS[column]
