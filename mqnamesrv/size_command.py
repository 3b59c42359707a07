"""`mqnamesrv size`: what a name server for so many brokers, topics and clients needs, at the command line."""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NoReturn

import msgspec

from mqnamesrv import costs, size
from mqnamesrv.costs import Costs
from mqnamesrv.size import DAY_S, Deployment, Needs, cores, gbit, gigabytes, hours, seconds
from rocketmq_remoting.typed import converted

NAME: Final = "size"
OK, WRONG_USAGE = 0, 1
MOST: Final = 10**9
ABOUT: Final = """\
What a name server for so many brokers, topics and clients needs, by costs that were measured (docs/scale.md):
workers, Redis, memory, network, events and the pipeline; and what breaks first, and what to change then."""
SEEN: Final = (
    "Seen: a tenth of 10,000 brokers, on two busy cores, took 2.6 times the CPU of workers that is said here for it, "
    "and six times that of Redis (docs/scale.md)."
)


class WrongSize(ValueError):
    """An option that is missing, unknown or wrong; the text names it."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongSize(message)


def run(arguments: Sequence[str]) -> int:
    """Print what is needed; return the exit code."""
    try:
        given = _parser().parse_args(arguments)
        wanted = deployment(given)
    except WrongSize as error:
        print(f"mqnamesrv {NAME}: {error}; mqnamesrv {NAME} --help lists the options", file=sys.stderr)
        return WRONG_USAGE
    except SystemExit:  # --help
        return OK
    measured = costs.measured()
    if given.json:
        print(msgspec.json.format(msgspec.json.encode(document(wanted, measured)), indent=2).decode())
    else:
        print("\n".join(lines(wanted, measured)))
    return OK


def deployment(given: argparse.Namespace) -> Deployment:
    """Return what the arguments say. Raises WrongSize where they contradict each other."""
    for option, of_all in (
        ("acting_masters", "brokers"),
        ("brokers_per_topic", "brokers"),
        ("topics_per_client", "topics"),
    ):
        value, most = getattr(given, option), getattr(given, of_all)
        if value is not None and value > most:
            name = option.replace("_", "-")
            raise WrongSize(f"argument --{name}: {value:g} are more than the {most} of --{of_all}")
    said = {name: getattr(given, name) for name in Deployment.__struct_fields__}
    return converted({name: value for name, value in said.items() if value is not None}, Deployment)


def document(of: Deployment, measured: Costs) -> dict[str, object]:
    """Return what is printed as JSON."""
    factor, limit = size.breaks_at(of, measured)
    found: dict[str, object] = msgspec.to_builtins(size.needs(of, measured))
    return {**found, "breaks_at": factor, "breaks_first": limit, "conditions": measured.conditions}


def lines(of: Deployment, measured: Costs) -> Iterator[str]:
    """Yield the lines that are printed."""
    found = size.needs(of, measured)
    for name, text in (*_load_rows(found), *_rows(found)):
        yield f"{name:<17} {text}"
    yield ""
    for limit in found.limits:
        yield f"{limit.share:7.1%}  {limit.name}: {limit.used}"
    yield ""
    factor, limit = size.breaks_at(of, measured)
    if factor > size.LEAST:
        larger = f"{factor:,.2f} times as many brokers, topics, clients and changes"
        yield f"Breaks first at {larger}: {limit.name} ({limit.used})."
    else:
        yield f"Fits at no size: {limit.name} ({limit.used})."
    yield f"Then: {limit.cure}."
    yield SEEN
    yield f"Costs: {measured.conditions.machine}; {measured.conditions.versions}; {measured.conditions.measured}."


def _load_rows(found: Needs) -> Iterator[tuple[str, str]]:
    load = found.load
    yield (
        "asked a second",
        f"{load.registrations:,.1f} registrations of {load.table:,.0f} topics, {load.changes:,.2f} changes, "
        f"{load.heartbeats:,.0f} heartbeats, {load.cluster_infos:,.0f} lists of brokers, {load.lookups:,.0f} lookups",
    )
    yield "held", f"{load.pairs:,.0f} pairs of topic and broker, {load.connections:,} connections"


def _rows(found: Needs) -> Iterator[tuple[str, str]]:
    yield (
        "remoting workers",
        f"{found.workers:,} (CPU needs {found.workers_for_cpu:,}, connections {found.workers_for_connections:,}; two "
        f"at least); together they use {cores(found.worker_cpu)}, each one at most",
    )
    yield (
        "their memory",
        f"{gigabytes(found.worker_bytes)} each, of which routes {gigabytes(found.route_cache_bytes)}; the kernel's for "
        f"all connections {gigabytes(found.kernel_bytes)}",
    )
    beside = f"{cores(found.beside_cpu)} and {gigabytes(found.beside_bytes)}"
    yield "beside them", f"{beside} on each machine that has workers"
    yield (
        "Redis",
        f"{cores(found.store_cpu)}, {gigabytes(found.store_bytes)}; maxmemory {gigabytes(found.store_limit_bytes)}",
    )
    yield (
        "network",
        f"{gbit(found.received)} in, {gbit(found.sent)} out (lists of brokers {gbit(found.cluster_info_sent)}); from "
        f"Redis {gbit(found.store_sent)}",
    )
    yield (
        "events a day",
        f"{found.events_day:,.0f}, {gigabytes(found.event_bytes_day)}; the stream keeps {hours(found.events_kept_s)}",
    )
    yield (
        "pipeline",
        f"{seconds(found.landing_cpu_s_day)} of CPU a day to land them every hour, {_share(found.landing_cpu_s_day)}",
    )
    yield (
        "after a failure",
        f"all brokers are back in an emptied Redis {seconds(found.refill_s)} after they came, half of them in one that "
        f"knew them after {seconds(found.half_again_s)}",
    )
    for name, value in found.options:
        yield "option", f"{name}={value}"


def _share(seconds_a_day: float) -> str:
    return f"{seconds_a_day / DAY_S:.2%} of a core"


def _parser() -> argparse.ArgumentParser:
    default = Deployment(1, 1, 1)
    parser = _Parser(
        prog=f"mqnamesrv {NAME}",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole, part = _number(whole=True), _number(whole=False)
    for option, kind, standard, text in (
        ("--brokers", _number(whole=True, least=1), None, "broker processes, slaves among them"),
        ("--topics", _number(whole=True, least=1), None, "topics, those of retries and of the system too"),
        ("--clients", whole, None, "producers and consumers, as processes"),
        (
            "--brokers-per-topic",
            _number(least=1),
            None,
            "brokers that have a topic; without: 4, or all of fewer",
        ),
        (
            "--topics-per-client",
            part,
            None,
            "topics that a client asks for every 30 s; without: 2, or all of fewer",
        ),
        (
            "--changes-per-second",
            part,
            None,
            "registrations with a changed topic; without: one a week of each pair",
        ),
        (
            "--acting-masters",
            whole,
            0,
            "brokers with enableSlaveActingMaster: heartbeat and lookup each second",
        ),
        (
            "--cluster-info-seconds",
            part,
            default.cluster_info_seconds,
            "between a broker's lists of all; 0: never",
        ),
        ("--network-gbit", _number(above=0), default.network_gbit, "of the service, and of Redis"),
        ("--store-gb", _number(above=0), default.store_gb, "memory of the machine of Redis"),
        ("--workers", whole, 0, "remoting workers; 0: as many as are needed"),
        (
            "--max-connections",
            _number(whole=True, least=1),
            default.max_connections,
            "maxConnections of each",
        ),
    ):
        needed = option in ("--brokers", "--topics", "--clients")
        shown = text if standard is None else f"{text} ({standard:g})"
        parser.add_argument(option, type=kind, default=standard, required=needed, metavar="N", help=shown)
    parser.add_argument(
        "--json", action="store_true", help="the same as an object of JSON, in bytes and seconds"
    )
    return parser


def _number(*, whole: bool = False, least: float = 0, above: float | None = None) -> Callable[[str], float]:
    """Return the reader of a number, whose errors say what is wrong with it. Commas and _ may part thousands."""

    def read(text: str) -> float:
        plain = re.sub(r"(?<=\d)[,_](?=\d{3}(?!\d))", "", text)
        try:
            value = int(plain) if whole else float(plain)
        except ValueError:
            kind = "a whole number" if whole else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind}") from None
        if math.isnan(value) or value < least or (above is not None and value <= above):
            bound = f"above {above:g}" if above is not None else f"at least {least:g}"
            raise argparse.ArgumentTypeError(f"{text} is not {bound}")
        if value > MOST:
            raise argparse.ArgumentTypeError(f"{text} is more than {MOST:,}")
        return value

    return read
