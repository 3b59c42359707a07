"""The reports, one row each: step, table, keys in Redis, HTTP view and section of the page follow from the row.

docs/contributing.md, "Adding a report", lists what else a new one needs; the HTTP API has the rows as
api/report_views.json."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from mqpipeline.schemas import ID, Partition, Table, by_month

PREFIX: Final = "namespace string, window string, from_ms bigint, to_ms bigint, unit string"
"""What each row of a windowed report begins with. `window` is `1h`, `24h`, `7d`, `30d` (rolling: they end at `as_of`),
`day`, `month` (calendar) or `now`; `unit` is `cluster:<c>`, `broker:<c>:<b>`, `slot:<c>:<b>:<id>` or `topic:<t>`."""
SUFFIX: Final = "as_of bigint, provisional boolean"
ROLLING: Final = ("1h", "24h", "7d", "30d")
UNITS: Final = {"cluster": 1000, "broker": 1000, "topic": 200, "slot": 100}
"""How many units of each kind are served of one window at most, the worst first."""
MOST_OF_KIND: Final = (
    "case kind " + " ".join(f"when '{kind}' then {most}" for kind, most in UNITS.items()) + " end"
)
LATEST: Final = 200
TOP_TOPICS: Final = "top"
"""The field of `churn:<window>` that holds topics; every other has a colon."""
_COLUMN: Final = re.compile(r"(\w+) (\w+(?:<(?:[^<>]|<[^<>]*>)*>)?)( not null)?(?:,|$)")


class Stored(Enum):
    """How a report lies in Redis (docs/pipeline-serving.md)."""

    WINDOWS = "a hash for each window, unit -> JSON"
    UNITS = "a hash of the longest window, unit -> JSON"
    SCORES = "a sorted set, unit by score, and the hash `<name>:values`, unit -> JSON"
    TIMES = "a sorted set, JSON by time"
    COUNTS = "a hash for each rolling window, unit -> acts,pairs"


class Cut(NamedTuple):
    """SQL: of each `group` within a namespace the first `most` rows in this `order` are served."""

    group: str
    order: str
    most: str


class Section(NamedTuple):
    """A part of the page, from the template of the report's name: its anchor and its entry in the contents."""

    anchor: str
    title: str


class Column(NamedTuple):
    """A column of the report's own: its SQL type, and whether it may be null."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """`name` is that of the step and its module in mqpipeline/reports/, of the key and of the path; the parameters of
    the step name what it reads (mqpipeline/reports/inputs.py).

    `columns` are its own, as DDL; `not null` is for readers of the API, files do not have it. `order` is the column
    that the API sorts by, `-` before it from high to low, and the score of a sorted set. `stored` is None of a report
    without key and path of its own. `unit` are the columns that name a row. `lines` is how many the page shows."""

    name: str
    title: str
    about: str
    columns: str
    cut: Cut
    order: str
    stored: Stored | None = None
    windowed: bool = True
    unit: tuple[str, ...] = ("unit",)
    section: Section | None = None
    lines: int = 20

    @property
    def table(self) -> Table:
        """Its table in the warehouse."""
        columns = self.columns.replace(" not null", "")
        if not self.windowed:
            keys = ("namespace", *self.unit)
            parts = (by_month(self.order_column),)
            return Table(self.name, f"namespace string, {columns}", keys=keys, partitions=parts)
        return Table(
            f"report_{self.name}",
            f"{PREFIX}, {columns}, {SUFFIX}",
            keys=("namespace", "window", "from_ms", "unit"),
            partitions=(Partition("window", "string", "window"),),
            sort=("namespace", "unit", "from_ms"),
        )

    @property
    def has_windows(self) -> bool:
        """Whether each window has a key of its own."""
        return self.stored in (Stored.WINDOWS, Stored.COUNTS)

    @property
    def order_column(self) -> str:
        return self.order.removeprefix("-")

    def key(self, window: str = "") -> str:
        """Return the name of its key below `report:`; `window` is `24h`, `day:2026-01-31`."""
        if self.has_windows:
            return f"{self.name}:{window}"
        return f"{self.name}:values" if self.stored is Stored.SCORES else self.name

    def own_columns(self) -> Iterator[Column]:
        """Yield the columns without those that all reports have."""
        for name, kind, required in _COLUMN.findall(" ".join(self.columns.split())):
            yield Column(name, kind, not required)


AVAILABILITY = Report(
    name="availability",
    title="Availability of clusters, brokers and the worst topics",
    about="""`availability` is up / (up + down), null where neither was; `weighted` a topic's by write queues; `worst` a
broker's least in any window of that length.""",
    columns="""up_ms bigint not null, down_ms bigint not null, planned_ms bigint not null, unknown_ms bigint not null,
    availability double, weighted double, outages bigint not null, mtbf_ms double, mttr_ms double,
    worst map<string, double>""",
    cut=Cut("window, from_ms, kind", "availability asc nulls last, down_ms desc, unit", MOST_OF_KIND),
    order="availability",
    stored=Stored.WINDOWS,
)
SLO = Report(
    name="slo",
    title="Error budgets and burn rates of clusters",
    about="""The error budget: `remaining` is a share of it, below 0 once it is overspent. `burn` is by the length of
the windows; `alerts` are the rates that both of their windows are over.""",
    columns="""slo double not null, budget_ms double, spent_ms double, remaining double, burn map<string, double>,
    alerts array<string>""",
    cut=Cut("window, kind", "remaining asc nulls last, unit", MOST_OF_KIND),
    order="remaining",
    stored=Stored.UNITS,
)
DETECT = Report(
    name="detect",
    title="How long a death went unnoticed",
    about="From the last sign of life until routes left the broker out; `censored` are silent and still there.",
    columns="""n bigint not null, p50_ms double, p95_ms double, p99_ms double, max_ms double, lower_p50_ms double,
    without_last_seen bigint, censored bigint, record_delay_p95_ms double, record_delay_max_ms double""",
    cut=Cut("window, kind", "n desc, unit", MOST_OF_KIND),
    order="-p50_ms",
    stored=Stored.UNITS,
    section=Section("detection", "Detection and repair"),
    lines=50,
)
REPAIR = Report(
    name="repair",
    title="How long outages take to end",
    about="How long outages take to end (Kaplan-Meier); null where too few of them have.",
    columns="outages bigint not null, n_open bigint not null, p50_ms double, p90_ms double, p95_ms double",
    cut=Cut("window, kind", "outages desc, unit", MOST_OF_KIND),
    order="-outages",
    stored=Stored.UNITS,
    lines=15,
)
FLAP = Report(
    name="flap",
    title="Slots that come and go",
    about="The score of a slot at the window's end; `episodes` began within the window.",
    columns="score double not null, flapping boolean, flapping_since_ms bigint, episodes bigint",
    cut=Cut("window, kind", "score desc, unit", MOST_OF_KIND),
    order="-score",
    stored=Stored.SCORES,
    section=Section("flapping", "Flapping"),
)
CHURN = Report(
    name="churn",
    title="Changes by cluster and cause, and the topics changed most",
    about="`unit` is `<cluster>:<cause>`; `pairs` are the topics on brokers that its acts touched.",
    columns="cluster string not null, cause string not null, acts bigint not null, pairs bigint not null",
    cut=Cut("window", "acts desc, unit", "2000"),
    order="-acts",
    stored=Stored.COUNTS,
    section=Section("churn", "Churn"),
)
CHURN_TOPICS = Report(
    name="churn_topics",
    title="The topics changed most",
    about="Changes that name the topic or a broker holding it; served as `topics` of churn.",
    columns="changes bigint",
    cut=Cut("window", "changes desc, unit", "100"),
    order="-changes",
    lines=15,
)
SKEW = Report(
    name="skew",
    title="How unevenly queues and topics lie on brokers",
    about="Of a cluster over its brokers, of a topic over its own: write queues, and topics.",
    columns="""queues_max_to_mean double, queues_gini double, topics_max_to_mean double, topics_gini double,
    brokers bigint""",
    cut=Cut("window, kind", "queues_max_to_mean desc nulls last, unit", MOST_OF_KIND),
    order="-queues_max_to_mean",
    stored=Stored.UNITS,
    section=Section("skew", "Skew"),
)
INCIDENTS = Report(
    name="incidents",
    title="Many members gone at once, the latest first",
    about="""`unit` is `<type>:<start>`, and `:<key>` where there is one. `members` were gone, that `share` of those
there were; `ids` are the first of its entries in the event stream.""",
    columns=f"""type string not null, start_ms bigint not null, key string not null, end_ms bigint,
    members int not null, share double, clusters array<string>, causes map<string, int>, restored_ms bigint,
    ids array<{ID}>""",
    cut=Cut("type", "start_ms desc, key", f"{LATEST}"),
    order="-start_ms",
    stored=Stored.TIMES,
    windowed=False,
    unit=("type", "start_ms", "key"),
    section=Section("incidents", "Incidents"),
)
CONFLICTS = Report(
    name="conflicts",
    title="Brokers that claimed what another had, the latest first",
    about="Claims to a name, an id or an address that another had.",
    columns="type string not null, count bigint not null, last_ms bigint not null, detail string",
    cut=Cut("window", "last_ms desc, unit", f"{LATEST}"),
    order="-last_ms",
    stored=Stored.TIMES,
    section=Section("conflicts", "Conflicts"),
)
TIMEOUTS = Report(
    name="timeouts",
    title="Time between heartbeats, and the broker timeout it suggests",
    about="Of the time between heartbeats. `suggestedTimeoutMillis` is null with less than 1,000 of them.",
    columns="""gaps bigint not null, p50_ms double, p95_ms double, p99_ms double, p999_ms double, max_ms double,
    missed bigint, suggested_timeout_ms double""",
    cut=Cut("window, kind", "missed desc nulls last, unit", MOST_OF_KIND),
    order="-missed",
    stored=Stored.UNITS,
    section=Section("timeouts", "Timeouts"),
)

CATALOGUE: Final = (
    AVAILABILITY,
    SLO,
    DETECT,
    REPAIR,
    FLAP,
    CHURN,
    CHURN_TOPICS,
    SKEW,
    INCIDENTS,
    CONFLICTS,
    TIMEOUTS,
)
"""In the order of the page; of rows that are too many to serve, those of the first reports are."""
TABLES: Final = tuple(report.table for report in CATALOGUE)
