"""The requests of a restore, one a change; each is refused where what is there is no longer what was compared."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from mqns.cli.backup.differences import Differences, KVChange
from mqns.cli.backup.state import Part, SavedDrain, State, is_shared, read_settings, read_state
from mqns.cli.drains import drain_path
from mqns.cli.http_api import HttpApi, HttpError, is_etag
from mqns.cli.kv import value_path

__all__ = ["Restoring", "expect_settable", "of_known_brokers"]

AGAIN: Final = "was changed meanwhile, and is left so; restore again to see what differs now"


class _AnyJson(msgspec.Struct):
    """A success, whatever it says."""


class _ValueJson(msgspec.Struct):
    value: str


def expect_settable(api: HttpApi, settings: Mapping[str, str]) -> None:
    """Raise HttpError for settings that the server would refuse; nothing is changed."""
    if settings:
        api.request(_AnyJson, "PATCH", "/v1/settings?dryRun=true", {"settings": settings})


def of_known_brokers(api: HttpApi, found: Differences) -> tuple[Differences, list[str]]:
    """Return the changes without drains of brokers that the server does not know, and these; nothing is changed."""
    unknown = [name for name, drain in found.drains.items() if not _is_known(api, name, drain)]
    drains = {name: drain for name, drain in found.drains.items() if name not in unknown}
    return msgspec.structs.replace(found, drains=drains), unknown


def _is_known(api: HttpApi, broker: str, drain: SavedDrain) -> bool:
    try:
        api.request(_AnyJson, "PUT", f"{drain_path(broker)}?dryRun=true", msgspec.to_builtins(drain))
    except HttpError as error:
        if error.kind != "broker-not-found":
            raise
        return False
    return True


class Restoring:
    """A restore under way; its counts and names are of what is done."""

    def __init__(self, api: HttpApi, before: State, wanted: Differences, unknown: Sequence[str] = ()) -> None:
        self._api, self._before, self._wanted = api, before, wanted
        self.put = self.deleted = 0
        self.settings: list[str] = []
        self.drained: list[str] = []
        self.undrained: list[str] = []
        self.unknown = [*unknown]
        """Brokers that the server does not know: their drains are left out."""

    def run(self, step: Callable[[], None]) -> None:
        """Make the changes, KV first, which settings may bring into force; `step` is called after each.

        Raises the first refusal."""
        for change in self._wanted.kv:
            self._change_value(change)
            step()
        self._set_settings(step)
        self._change_drains(step)

    def _change_value(self, change: KVChange) -> None:
        path = value_path(change.namespace, change.key)
        try:
            conditions = self._conditions(path, change)
            if change.after is None:
                self._api.request_tagged(_AnyJson, "DELETE", path, conditions=conditions)
                self.deleted += 1
            else:
                self._api.request_tagged(_AnyJson, "PUT", path, {"value": change.after}, conditions)
                self.put += 1
        except HttpError as error:
            meanwhile = error.kind in ("condition-failed", "config-not-found")
            raise HttpError(
                f"KV value {change.name} {AGAIN}" if meanwhile else str(error), error.kind
            ) from None

    def _conditions(self, path: str, change: KVChange) -> Mapping[str, str]:
        """Return the condition that the value is the one that was compared. Raises HttpError where it is not."""
        if change.before is None:
            return {"If-None-Match": "*"}
        stored, etag = self._api.request_tagged(_ValueJson, "GET", path)
        if stored.value != change.before:
            raise HttpError("", "condition-failed")
        if not is_etag(etag):
            raise HttpError(f"{self._api.url}: KV value {change.name} has no ETag of a redis-namesrv")
        return {"If-Match": etag}

    def _set_settings(self, step: Callable[[], None]) -> None:
        wanted = self._wanted.settings
        if not wanted:
            return
        _expect_same("option", wanted, self._before.settings, read_settings(self._api, is_shared))
        self._api.request(_AnyJson, "PATCH", "/v1/settings", {"settings": wanted})
        for key in wanted:
            self.settings.append(key)
            step()

    def _change_drains(self, step: Callable[[], None]) -> None:
        drains, undrained = self._wanted.drains, self._wanted.undrained
        if not drains and not undrained:
            return
        now = read_state(self._api, (Part.DRAINS,), is_shared).drains
        _expect_same("the drain of broker", (*drains, *undrained), self._before.drains, now)
        for name, drain in drains.items():
            known = self._is_done("PUT", name, msgspec.to_builtins(drain))
            (self.drained if known else self.unknown).append(name)
            step()
        for name in undrained:
            if self._is_done("DELETE", name):
                self.undrained.append(name)
            step()

    def _is_done(self, method: str, broker: str, body: object = None) -> bool:
        """Return whether the drain of a broker was changed; False for a broker that the server does not know."""
        try:
            self._api.request(_AnyJson, method, drain_path(broker), body)
        except HttpError as error:
            if error.kind != "broker-not-found":
                raise
            return False
        return True


def _expect_same(
    what: str, names: Collection[str], before: Mapping[str, object], now: Mapping[str, object]
) -> None:
    """Raise HttpError for the first of these names of which the server has something else now."""
    for name in names:
        if before.get(name) != now.get(name):
            raise HttpError(f"{what} {name} {AGAIN}")
