"""Routes of times that are over."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mqpipeline.cli.common import (
    NOT_THERE,
    WRONG_USAGE,
    AsJson,
    OfNamespace,
    OfWarehouse,
    options,
    reading,
    stop,
    time,
)
from mqpipeline.history.questions import Json, ask
from mqpipeline.texts import plain
from mqpipeline.times import format_time, parse_time

WIDE: Final = 100_000
"""Columns of what is no terminal: there, no line is folded."""

Topic = Annotated[str, typer.Argument(help="A topic", show_default=False)]
OfTopic = Annotated[str | None, typer.Option("--topic", "-t", help="Of this topic only", show_default=False)]
OfBroker = Annotated[
    str | None, typer.Option("--broker", "-b", help="On this broker only", show_default=False)
]
Since = Annotated[
    int | None,
    typer.Option(
        "--from", parser=parse_time, help="Not before this time", metavar="TIME", show_default=False
    ),
]
Until = Annotated[
    int | None,
    typer.Option("--to", parser=parse_time, help="Not after this time", metavar="TIME", show_default=False),
]
AsRecorded = Annotated[
    bool, typer.Option("--as-recorded", help="With members that had fallen silent, until that was written")
]
ActingMaster = Annotated[
    bool, typer.Option("--acting-master", help="As with the setting supportActingMaster")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="How many changes at most")]


def add(app: typer.Typer) -> None:
    """The commands `route-at`, `diff`, `who` and `timeline`."""
    for command in (route_at, diff, who, timeline):
        app.command()(command)


def route_at(
    topic: Topic,
    at: Annotated[int, time("TIME")],
    as_recorded: AsRecorded = False,
    acting_master: ActingMaster = False,
    warehouse: OfWarehouse = None,
    namespace: OfNamespace = None,
    as_json: AsJson = False,
) -> None:
    """The brokers that served a topic at a time, as clients saw them."""
    reply = _asked(
        warehouse,
        namespace,
        "route",
        topic=topic,
        at_ms=at,
        as_recorded=as_recorded,
        acting_master=acting_master,
    )
    if reply["route"] is None:
        stop(f"no route of topic {topic!r} at {format_time(at)}", NOT_THERE)
    _show(reply, as_json, _route_table)


def diff(
    from_: Annotated[int, time("FROM")],
    to: Annotated[int, time("TO")],
    topic: OfTopic = None,
    acting_master: ActingMaster = False,
    limit: Limit = 1000,
    warehouse: OfWarehouse = None,
    namespace: OfNamespace = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two times, and what made it so."""
    if to < from_:
        stop("TO is before FROM", WRONG_USAGE)
    reply = _asked(
        warehouse,
        namespace,
        "diff",
        from_ms=from_,
        to_ms=to,
        topic=topic,
        acting_master=acting_master,
        limit=limit,
    )
    _show(reply, as_json, _diff_table)


def who(
    topic: Topic,
    broker: OfBroker = None,
    from_: Since = None,
    to: Until = None,
    limit: Limit = 1000,
    warehouse: OfWarehouse = None,
    namespace: OfNamespace = None,
    as_json: AsJson = False,
) -> None:
    """Who changed a topic's permissions, the newest first."""
    reply = _asked(
        warehouse, namespace, "permissions", topic=topic, broker=broker, from_ms=from_, to_ms=to, limit=limit
    )
    _refuse_nothing(
        reply, f"the permissions of topic {topic!r}" + (f" on broker {broker!r}" if broker else "")
    )
    _show(reply, as_json, _changes_table)


def timeline(
    topic: Topic,
    from_: Since = None,
    to: Until = None,
    limit: Limit = 1000,
    warehouse: OfWarehouse = None,
    namespace: OfNamespace = None,
    as_json: AsJson = False,
) -> None:
    """What happened to a topic's route, the newest first."""
    reply = _asked(warehouse, namespace, "timeline", topic=topic, from_ms=from_, to_ms=to, limit=limit)
    _refuse_nothing(reply, f"topic {topic!r}")
    _show(reply, as_json, _changes_table)


def _asked(warehouse: str | None, namespace: str | None, question: str, **arguments: Any) -> Json:
    chosen = options(warehouse, namespace)
    with reading(chosen) as reader:
        tables = reader.reading(chosen.namespaces[0])
        reply = ask(tables, question, arguments)
        topic = arguments.get("topic")
        unknown = not reply["outside"] and topic is not None and not tables.knows(topic)
    if unknown:
        stop(f"the tables have never had a topic {topic!r}: see its name, and --namespace", NOT_THERE)
    if reply.pop("outside"):
        landed = reply["landed"]
        first, last = format_time(landed["fromMillis"]), format_time(landed["untilMillis"])
        stop(
            f"the tables cover {first} to {last}: ask within it, or land more with `mqpipeline run`",
            NOT_THERE,
        )
    return reply


def _refuse_nothing(reply: Json, what: str) -> None:
    if not reply["changes"]:
        first, last = format_time(reply["fromMillis"]), format_time(reply["toMillis"])
        stop(f"no change of {what} from {first} to {last}", NOT_THERE)


def _show(reply: Json, as_json: bool, table: Callable[[Json], Table]) -> None:
    if as_json:
        print(json.dumps(reply, ensure_ascii=False, indent=2))
        return
    width = None if sys.stdout.isatty() else WIDE
    Console(width=width, markup=False, emoji=False, highlight=False).print(table(reply))


def _route_table(reply: Json) -> Table:
    brokers = {data["brokerName"]: data for data in reply["route"]["brokerDatas"]}
    return _table(
        ("CLUSTER", "BROKER", "ADDRESSES", "READ", "WRITE", "PERM"),
        [
            (
                brokers[queues["brokerName"]]["cluster"],
                queues["brokerName"],
                _addresses(brokers[queues["brokerName"]]),
                queues["readQueueNums"],
                queues["writeQueueNums"],
                queues["perm"],
            )
            for queues in reply["route"]["queueDatas"]
        ],
    )


def _diff_table(reply: Json) -> Table:
    return _table(
        ("TIME", "TOPIC", "BROKER", "CHANGE", "BEFORE", "AFTER", "CAUSE", "ACTOR", "OP"),
        [
            (
                _time(change),
                change["topic"],
                change["brokerName"],
                change["change"],
                _side(change["before"], change["fields"]),
                _side(change["after"], change["fields"]),
                *_cause(change),
            )
            for change in reply["changes"]
        ],
    )


def _changes_table(reply: Json) -> Table:
    return _table(
        ("TIME", "TOPIC", "BROKER", "WHAT", "BEFORE", "AFTER", "CAUSE", "ACTOR", "OP"),
        [
            (
                _time(change),
                change["topic"],
                change["brokerName"],
                change.get("what", "perm"),
                change["before"],
                change["after"],
                *_cause(change),
            )
            for change in reply["changes"]
        ],
    )


def _side(side: Json | None, fields: Sequence[str]) -> str:
    """The members that differ, or all queues of what came or went."""
    if side is None:
        return ""
    members = fields or ("readQueueNums", "writeQueueNums", "perm")
    return " ".join(_addresses(side) if name == "brokerAddrs" else f"{name}={side[name]}" for name in members)


def _addresses(data: Json) -> str:
    return " ".join(f"{number}={address}" for number, address in data["brokerAddrs"].items())


def _time(change: Json) -> str:
    return "" if change["atMillis"] is None else format_time(change["atMillis"])


def _cause(change: Json) -> tuple[Any, ...]:
    return change["cause"], change["actor"], change["op"]


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else plain(str(cell))) for cell in row))
    return table
