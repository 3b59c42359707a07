"""What a backup is of: KV, shared settings and drains of a redis-namesrv, as its HTTP API has them."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from mqns.cli.drain_list import DrainDocument, read_drains
from mqns.cli.http_api import HttpApi, HttpError, name_in_path
from mqns.cli.server_settings import STORE_AWAY, OptionDocument, OptionsDocument

__all__ = ["KVTables", "Part", "SavedDrain", "State", "is_shared", "read_settings", "read_state", "was_set"]

PAGE: Final = 1000
KV_MOST: Final = {"namespaces": 10_000, "pages": 20_000, "values": 1_000_000, "characters": 256 << 20}
"""How much KV is read; unless its limits were raised, a redis-namesrv has 200 namespaces of 1,000 values and 1 MB."""
START: Final = frozenset({"file", "environment", "command line"})
"""Sources of values that a process was started with."""
MASK: Final = "***"
"""What a redis-namesrv shows in the place of a secret, also in a URL."""
STORE_URL: Final = "edisUrl"
"""The end of the names of options that are a URL of a store."""

KVTables: TypeAlias = Mapping[str, Mapping[str, str]]


class Part(StrEnum):
    """A part of a backup."""

    KV = "kv"
    SETTINGS = "settings"
    DRAINS = "drains"


class SavedDrain(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A drain; `until_millis` is Unix ms, None without an end."""

    owner: str
    reason: str
    until_millis: int | None


class State(msgspec.Struct, frozen=True):
    """KV values by namespace and key, texts of settings, drains by broker name; a damaged drain is None."""

    kv: KVTables
    settings: Mapping[str, str]
    drains: Mapping[str, SavedDrain | None]


class _NamespacesPage(msgspec.Struct, frozen=True):
    namespaces: list[str]
    next: str | None


class _TablePage(msgspec.Struct, frozen=True):
    table: dict[str, str]
    next: str | None


def read_state(api: HttpApi, parts: Collection[Part], wanted: Callable[[OptionDocument], bool]) -> State:
    """Return these parts of what a server has, the others empty. Raises HttpError, ConnectError, CallTimeout."""
    return State(
        _read_kv(api) if Part.KV in parts else {},
        read_settings(api, wanted) if Part.SETTINGS in parts else {},
        {drain.broker_name: _saved(drain) for drain in read_drains(api)} if Part.DRAINS in parts else {},
    )


def read_settings(api: HttpApi, wanted: Callable[[OptionDocument], bool]) -> dict[str, str]:
    """Return the shared values of those options that are wanted. Raises HttpError also while the store is away."""
    document = api.request(OptionsDocument, "GET", "/v1/options")
    if not document.shared_known:
        raise HttpError(f"{api.url}: {STORE_AWAY}")
    return {
        option.key: option.shared
        for option in document.options
        if option.shared is not None and wanted(option)
    }


def is_shared(option: OptionDocument) -> bool:
    """Return whether all workers share a value of it that is no secret."""
    return option.shared is not None and MASK not in option.shared and not option.key.endswith(STORE_URL)


def was_set(option: OptionDocument) -> bool:
    """Return whether an operator set the shared value: it is another than the one that the process was started with."""
    return is_shared(option) and (option.differs or option.source not in START)


class _Room:
    """How much more KV may be read from a server, which may list what it likes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._left = dict(KV_MOST)

    def take(self, **read: int) -> None:
        """Count what was read. Raises HttpError for too much."""
        for what, count in read.items():
            self._left[what] -= count
            if self._left[what] < 0:
                raise HttpError(f"{self._url}: over {KV_MOST[what]} {what} of KV")


def _read_kv(api: HttpApi) -> KVTables:
    """Return all KV; namespaces without a value are left out."""
    tables: dict[str, dict[str, str]] = {}
    room = _Room(api.url)
    for names in api.pages(_NamespacesPage, f"/v1/kv?limit={PAGE}"):
        room.take(namespaces=len(names.namespaces))
        for namespace in names.namespaces:
            if table := _read_table(api, namespace, room):
                tables[namespace] = table
    return tables


def _read_table(api: HttpApi, namespace: str, room: _Room) -> dict[str, str]:
    table: dict[str, str] = {}
    for page in api.pages(_TablePage, f"/v1/kv/{name_in_path(namespace)}?limit={PAGE}"):
        characters = sum(len(key) + len(value) for key, value in page.table.items())
        room.take(pages=1, values=len(page.table), characters=characters)
        table |= page.table
    return table


def _saved(drain: DrainDocument) -> SavedDrain | None:
    if drain.damaged or drain.owner is None or drain.reason is None:
        return None
    return SavedDrain(drain.owner, drain.reason, drain.until_millis)
