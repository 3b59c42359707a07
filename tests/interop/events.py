"""What a server of a test has recorded."""

from pathlib import Path
from typing import Any

from mqnamesrv.store import opened
from registry.keys import Keys
from registry.store.connect import connect


def events(data: Path) -> list[dict[str, str]]:
    """Return all events of the server with this `dataDir`."""
    with opened("", data) as url, connect(url, "default") as store:
        entries: Any = store.xrange(Keys("default").events)
    return [event for _, event in entries]
