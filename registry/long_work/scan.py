"""Reading whole tables without holding Redis: in pages, however large they are.

What changes meanwhile may or may not be seen; what was there before and after is."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from registry.plans import Plan, call

PAGE: Final = 2000
FIRST_PAGE: Final = 100
"""It tells how long the texts are."""
PAGE_CHARACTERS: Final = 500_000
BATCH_CHARACTERS: Final = 250_000
"""That a script reads or writes on both sides."""
PATTERN_SIGNS: Final = re.compile(r"[*?\[\]\\]")
_ESCAPED: Final = r"\\\g<0>"


def scan(key: str) -> Plan[dict[str, str]]:
    """Return all fields of a hash. Writers judge by a fence whether one has changed."""
    stored: dict[str, str] = {}
    yield from scan_pages(key, stored.update)
    return stored


def scan_pages(key: str, taken: Callable[[dict[str, str]], object], prefix: str = "") -> Plan[None]:
    """Have each page of a hash taken, for what needs no more than one at once. A field may come twice.

    With a prefix Redis leaves out the other fields."""
    cursor, count = "0", FIRST_PAGE
    while True:
        cursor, page = yield call("HSCAN", key, cursor, *_match(prefix), "COUNT", count)
        taken(page)
        if str(cursor) == "0":
            return
        count = _next_count(len(page), _characters(page) + _characters(page.values()))


def members_of(key: str, prefix: str = "") -> Plan[set[str]]:
    """Return all members of a set, or those with a prefix: Redis leaves out the others."""
    members = set[str]()
    cursor, count = "0", FIRST_PAGE
    while True:
        cursor, page = yield call("SSCAN", key, cursor, *_match(prefix), "COUNT", count)
        members.update(page)
        if str(cursor) == "0":
            return members
        count = _next_count(len(page), _characters(page))


def some_of(names: Sequence[str], at: int, most: int) -> Sequence[str]:
    """Return the names from `at` on that a command may take: so many, or fewer long ones, one at least."""
    taken = names[at : at + most]
    while len(taken) > 1 and _characters(taken) > PAGE_CHARACTERS:
        taken = taken[: len(taken) // 2]
    return taken


def _match(prefix: str) -> tuple[str, ...]:
    """Return the arguments by which a scan leaves out what does not begin so."""
    return ("MATCH", f"{PATTERN_SIGNS.sub(_ESCAPED, prefix)}*") if prefix else ()


def _characters(texts: Iterable[str]) -> int:
    return sum(map(len, texts))


def _next_count(items: int, characters: int) -> int:
    """Return how many items the next page may have, if they are as long as those of the last one."""
    return max(min(PAGE, PAGE_CHARACTERS * items // max(characters, 1)), 1) if items else PAGE


def batches_for_scripts(stored: dict[str, str], size: int) -> Iterator[list[tuple[str, str]]]:
    """Yield the items of a table in batches of at most `size`, fewer of long texts at a time."""
    batch: list[tuple[str, str]] = []
    characters = 0
    for field, value in stored.items():
        length = len(field) + len(value)
        if batch and (len(batch) == size or characters + length > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append((field, value))
        characters += length
    if batch:
        yield batch
