"""The HTTP side of a redis-namesrv as the target of a mirror."""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec

from mqns.cli.http_api import HttpApi, HttpError, name_in_path
from mqns.cli.mirrored_members import read_mirrored
from mqns.mirror.target import MirroredMember, OwnRegistration, Refused, Registration

T = TypeVar("T")
PATH: Final = "/v1/mirrored-brokers"


class _Absent(Refused):
    """What is to be deleted is not there."""


REFUSALS: Final = {"own-registration": OwnRegistration, "config-not-found": _Absent}
"""By the kind of the problem."""


class _WrittenJson(msgspec.Struct, rename="camel"):
    event_id: str | None
    dry_run: "_DryRunJson | None" = None

    @property
    def changes(self) -> bool:
        """Whether it changed anything, or a dry run would."""
        return self.event_id is not None or (self.dry_run is not None and bool(self.dry_run.events))


class _DryRunJson(msgspec.Struct):
    events: dict[str, int]


class _ReadyJson(msgspec.Struct, rename="camel"):
    started_millis: int


class _StatesJson(msgspec.Struct):
    states: list[str]


class HttpTarget:
    """A `mqns.mirror.target.Target`; with `dry_run` it asks what each change would do, and changes nothing."""

    def __init__(self, api: HttpApi, *, dry_run: bool = False) -> None:
        self._api = api
        self._dry_run = dry_run

    async def service_start(self) -> str:
        return str((await self._ask(_ReadyJson, "GET", "/readyz")).started_millis)

    async def renew(self, members: Sequence[MirroredMember]) -> Sequence[str]:
        body = {"members": msgspec.to_builtins(members)}
        return (await self._change(_StatesJson, "POST", f"{PATH}/heartbeats", {}, body)).states

    async def mirrored(self, mark: str) -> Sequence[MirroredMember]:
        try:
            marks = await asyncio.to_thread(read_mirrored, self._api)
        except HttpError as error:
            raise Refused(str(error)) from error
        return [member for member, source in marks.items() if source == mark]

    async def register(self, registration: Registration) -> bool:
        body = msgspec.to_builtins(registration)
        return (await self._change(_WrittenJson, "POST", PATH, {}, body)).changes

    async def remove(self, member: MirroredMember, mark: str) -> bool:
        where = {"cluster": member.cluster, "brokerAddr": member.broker_addr, "mirroredFrom": mark}
        return (await self._change(_WrittenJson, "DELETE", PATH, where)).changes

    async def set_kv(self, namespace: str, key: str, value: str | None) -> bool:
        path = f"/v1/kv/{name_in_path(namespace)}/{name_in_path(key)}"
        if value is not None:
            return (await self._change(_WrittenJson, "PUT", path, {}, {"value": value})).changes
        try:
            return (await self._change(_WrittenJson, "DELETE", path)).changes
        except _Absent:
            return False

    async def _change(
        self, shape: type[T], method: str, path: str, query: dict[str, str] | None = None, body: object = None
    ) -> T:
        asked = (query or {}) | ({"dryRun": "true"} if self._dry_run else {})
        return await self._ask(shape, method, f"{path}?{urlencode(asked)}" if asked else path, body)

    async def _ask(self, shape: type[T], method: str, path: str, body: object = None) -> T:
        """Return an answer. Raises OwnRegistration, Refused, RemotingError."""
        try:
            return await asyncio.to_thread(self._api.request, shape, method, path, body)
        except HttpError as error:
            raise REFUSALS.get(error.kind, Refused)(str(error)) from error
