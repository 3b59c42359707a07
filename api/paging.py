"""Pages of lists that are sorted by name: a page begins after a name, so changes between pages shift nothing."""

from collections.abc import Iterable
from heapq import nsmallest
from typing import Annotated, Final

from pydantic import Field

from api.shapes import Query

LIMIT_MOST: Final = 1000
Limit = Annotated[int, Field(ge=1, le=LIMIT_MOST)]


class PageQuery(Query):
    """`after` is the `next` of the page before."""

    limit: Limit = 100
    after: str = ""


def page(names: Iterable[str], query: PageQuery) -> tuple[tuple[str, ...], str | None]:
    """Return the sorted names of the requested page and the `next` of the page, None after the last.

    `names` are in any order: to sort all of 100,000 for each page takes four times as long."""
    following = (name for name in names if name > query.after) if query.after else names
    listed = nsmallest(query.limit + 1, following)
    more = len(listed) > query.limit
    return tuple(listed[: query.limit]), listed[query.limit - 1] if more else None
