"""What a run saw of the streams: entries that are not in the tables, and whether a checkpoint agrees with these.

Counts add up from run to run: an incremental run takes those of the run before, and counts what it has read itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Row: TypeAlias = Mapping[str, Any]
"""By the names of columns."""
ADDED = ("repeats", "phantoms", "unknown", "incomplete")
MISSING = ("missing", "incarnations")
ROUND = ("round", "round_ms", "proves", "members", "members_differing", "pairs", "pairs_differing")

NOTHING: Final[Row] = {}


class Entries(NamedTuple):
    """Counts of a namespace: entries that have landed, repeats included, and of them those that could not be read."""

    entries: int | None
    rejected: int | None


NOT_COUNTED: Final = Entries(None, None)


MOST: Final = 2**63 - 1
"""Of entries that numbers of another hand say are missing."""


class Seen(NamedTuple):
    """What a run itself has seen: rows of `clean.counts`, of `missing` (None: no new gaps), and of `check.checks`."""

    counts: Sequence[Row]
    missing: Sequence[Row] | None
    checks: Sequence[Row]


def health(
    seen: Seen, before: Iterable[Row], landed: Mapping[str, Entries], as_of: Mapping[str, int], as_of_ms: int
) -> list[Row]:
    """Return the rows of HEALTH: what was seen, and before that by the run that this one went on from. `as_of` is that
    of namespaces, `as_of_ms` of all others."""
    carried, counted, checked = _by_namespace(before), _by_namespace(seen.counts), _by_namespace(seen.checks)
    missing = carried if seen.missing is None else _by_namespace(seen.missing)
    rows: list[Row] = []
    known = {namespace for namespace, row in carried.items() if row["entries"] != 0}  # None: not counted
    for namespace in sorted(known | counted.keys() | landed.keys()):
        old, new = carried.get(namespace, NOTHING), counted.get(namespace, NOTHING)
        rows.append(
            {
                "namespace": namespace,
                "as_of": as_of.get(namespace, as_of_ms),
                **landed.get(namespace, NOT_COUNTED)._asdict(),
                **{name: old.get(name, 0) + new.get(name, 0) for name in ADDED},
                "waiting": new.get("waiting", 0),
                **{name: missing.get(namespace, NOTHING).get(name, 0) for name in MISSING},
                **_round(checked.get(namespace), old),
            }
        )
    return rows


def is_wrong(row: Row) -> bool:
    """Whether a checkpoint differs from tables that were made of a whole history."""
    return bool(row["proves"] and (row["members_differing"] or row["pairs_differing"]))


def missing(gaps: DataFrame) -> DataFrame:
    """Return by `namespace`, from GAPS: how many entries are `missing` and how often the stream began again
    (`incarnations`)."""
    entries = F.expr("if(type = 'hole', cast(to_seq as decimal(20)) - from_seq + 1, 0)")
    return gaps.groupBy("namespace").agg(
        F.least(F.sum(entries), F.lit(MOST)).cast("bigint").alias("missing"),
        F.count_if(F.col("type") == "incarnation").alias("incarnations"),
    )


def _by_namespace(rows: Iterable[Row]) -> dict[str, Row]:
    return {row["namespace"]: row for row in rows}


def _round(check: Row | None, old: Row) -> dict[str, Any]:
    """Return the columns of the newest round that was compared."""
    if check is None:
        return {name: old.get(name) for name in ROUND}
    return {name: check["end_ms" if name == "round_ms" else name] for name in ROUND}
