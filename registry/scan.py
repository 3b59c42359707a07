"""Reading whole tables without holding Redis: in pages, however large they are."""

from collections.abc import Callable, Iterator

from registry.plans import Plan, call

PAGE = 2000


def scan(key: str) -> Plan[dict[str, str]]:
    """Return all fields of a hash. What changes meanwhile may or may not be seen: writers judge by a fence."""
    stored: dict[str, str] = {}
    yield from scan_pages(key, stored.update)
    return stored


def scan_pages(key: str, taken: Callable[[dict[str, str]], object]) -> Plan[None]:
    """Have each page of a hash taken, for what needs no more than one at once. A field may come twice."""
    cursor = "0"
    while True:
        cursor, page = yield call("HSCAN", key, cursor, "COUNT", PAGE)
        taken(page)
        if str(cursor) == "0":
            return


def batches(stored: dict[str, str], size: int) -> Iterator[list[tuple[str, str]]]:
    """Yield the items of a table in batches of at most `size`."""
    items = list(stored.items())
    for start in range(0, len(items), size):
        yield items[start : start + size]
