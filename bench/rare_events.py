"""How long it takes to read what names something rare, on a stream of a million entries of one day.

`python -m mqnamesrv.throwaway python -m bench.rare_events [--entries N]` writes the changes of 300 brokers with 20,000
topics, each over a connection of its own, and among them three entries that name a topic and a broker of no other. It
reads all pages for each filter, first without summaries and then with them, and prints the seconds that each took, what
the job that writes the summaries took of this process, and what they take in Redis. `--keep` leaves out the reading.
"""

import argparse
import os
from collections.abc import Iterator
from random import Random
from time import perf_counter, process_time
from typing import Any

from registry.drivers import run
from registry.events.entry import FIRST, LAST, following, preceding
from registry.events.filters import Filter
from registry.events.pages import Page, event_ranges, read_page
from registry.events.summarizer import Summarizer
from registry.keys import Keys
from registry.plans import Plan
from registry.store.connect import connect

KEYS = Keys()
BROKERS, TOPICS, RARE = 300, 20_000, 3
DAY_MS, MARGIN_MS = 86_400_000, 3_600_000
AT_ONCE = 1_000
LIMIT = 1_000
MB = 1e6
FILTERS = {
    "a rare topic": Filter(topic="rare_topic"),
    "a rare broker": Filter(broker="rare-broker"),
    "a topic that is none's": Filter(topic="no_topic"),
}


def fields_of(random: Random, number: int, inc: int) -> dict[str, Any]:
    """Return the fields of a usual entry, as scripts write them."""
    broker = random.randrange(BROKERS)
    common = {"v": 1, "kind": "topics_changed", "inc": inc, "seq": number, "op": f"w{number:x}"}
    actor = f"wire:10.0.{broker // 250}.{broker % 250}:{40_000 + broker + BROKERS * random.randrange(20)}"
    name, cluster = f"broker-{broker:03}", f"cluster-{broker // 10}"
    if random.random() < 0.7:
        topic = f"topic_{random.randrange(TOPICS):05}"
        rows = f'[["{name}","8,8,6,0","16,16,6,0",["{topic}"]]]'
        more = {"cause": "register", "actor": actor, "rows": rows, "count": 1}
        return common | more | {"cluster": cluster, "broker": name, "epoch": broker}
    kind = random.choice(("broker_registered", "broker_removed", "broker_updated"))
    more = {"cause": "join", "actor": actor, "cluster": cluster, "broker": name, "id": 0, "addr": actor[5:]}
    return common | {"kind": kind} | more


def fill(store: Any, count: int) -> None:
    """Write so many entries, the last of them just now."""
    random = Random(1)
    now_ms = store.time()[0] * 1000
    inc = now_ms - DAY_MS + MARGIN_MS
    rare = {count * place // (RARE + 1) for place in range(1, RARE + 1)}
    pipe = store.pipeline(transaction=False)
    for number in range(1, count + 1):
        fields = fields_of(random, number, inc)
        if number in rare:
            rows = '[["rare-broker","8,8,6,0","16,16,6,0",["rare_topic"]]]'
            fields |= {"kind": "topics_changed", "rows": rows, "broker": "rare-broker"}
        at_ms = inc + (now_ms - inc) * number // count
        pipe.xadd(KEYS.events, fields, id=f"{at_ms}-{number}")
        if number % AT_ONCE == 0:
            pipe.execute()
    pipe.hset(KEYS.events_meta, mapping={"inc": inc, "seq": count})
    pipe.execute()


def pages(store: Any, wanted: Filter, *, newest_first: bool) -> Iterator[Page]:
    """Yield page after page, to the end."""
    first, last = FIRST, LAST
    while True:

        def plan(first: Any = first, last: Any = last) -> Plan[Page]:
            ranges = yield from event_ranges(KEYS, first, last)
            return (yield from read_page(ranges, wanted, newest_first=newest_first, limit=LIMIT))

        page = run(plan(), store)
        yield page
        if not page.more or page.examined is None:
            return
        first, last = (first, preceding(page.examined)) if newest_first else (following(page.examined), last)


def show(store: Any, what: str) -> None:
    """Print how long each filter takes, in both orders."""
    for name, wanted in FILTERS.items():
        for newest_first in (True, False):
            began = perf_counter()
            read = list(pages(store, wanted, newest_first=newest_first))
            took, count = perf_counter() - began, sum(len(page.events) for page in read)
            order = "desc" if newest_first else "asc"
            print(f"{what}: {name}, {order}: {took:.3f} s, {len(read)} pages, {count} entries", flush=True)


def summarize(store: Any) -> None:
    """Write the summaries, and print what that took."""
    summarizer = Summarizer(KEYS, rest=0)
    began, used, written = perf_counter(), process_time(), 0
    while count := run(summarizer.run(), store):
        written += count
    took, used = perf_counter() - began, process_time() - used
    entries = store.xlen(KEYS.events)
    of_thousand_ms = used * 1e6 / max(entries, 1)
    summary_bytes, entry_bytes = (
        store.memory_usage(key, samples=0) or 0 for key in (KEYS.event_summaries, KEYS.events)
    )
    print(f"job: {written} summaries in {took:.1f} s, {of_thousand_ms:.1f} ms of a core for 1,000 entries")
    print(
        f"Redis: {summary_bytes / MB:.2f} MB of summaries, {entry_bytes / MB:.1f} MB of entries", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--fill", action="store_true", help="write entries only")
    given = parser.parse_args()
    store = connect(os.environ["REDIS_URL"])
    fill(store, given.entries)
    if given.fill:
        return
    show(store, "without")
    summarize(store)
    show(store, "with")


if __name__ == "__main__":
    main()
