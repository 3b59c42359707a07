"""Pages of lists that are sorted by name: a page begins after a name, so changes between pages shift nothing."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from api.shapes import Query

LIMIT_MOST: Final = 1000
Limit = Annotated[int, Field(ge=1, le=LIMIT_MOST)]


class PageQuery(Query):
    """`after` is the `next` of the page before."""

    limit: Limit = 100
    after: str = ""


def page(names: Sequence[str], query: PageQuery) -> tuple[Sequence[str], str | None]:
    """Return the names of the requested page and the `next` of the page, None after the last."""
    start = bisect_right(names, query.after) if query.after else 0
    end = start + query.limit
    return names[start:end], names[end - 1] if end < len(names) else None
