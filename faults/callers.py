"""Callers with and without rights that ask again and again while something breaks: by key, certificate and token."""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from access.tokens import new_token
from faults.places import Place
from mqns.remoting.acl import AclCredentials
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import Command
from testbed.connection import OPAQUES, V4_8_0, Connection
from testbed.rocketmq.enforced import CLIENT_KEY, CLIENT_SECRET, REVOKED, REVOKED_KEY

EVERY_S: Final = 1.0
ANSWER_S: Final = 10.0
"""Longer than reads of a store that hangs take, which requests over HTTP wait for."""
LATE_S: Final = 3 * ANSWER_S
NEW_TOKENS: Final = 90
"""More than are shown while a row runs; each is shown once."""
PAUSE_S: Final = 0.12
"""Between changes over HTTP: ten a second are answered."""

KEY, CERTIFICATE, FILE_TOKEN = "key", "certificate", "token of the file"
TOKEN, NEW_TOKEN, WRITER = "token", "new token", "token that changes"
"""Of the store: one that is shown again and again, those that are shown once, and one that changes a KV value."""
REVOKED_KEY_OF, REVOKED_TOKEN = "revoked key", "revoked token"
"""Of the access file."""
UNKNOWN_KEY, UNKNOWN_TOKEN = "unknown key", "unknown token"


class Outcome(Enum):
    """What became of a request."""

    LET_IN = "let in"
    TURNED_AWAY = "turned away"
    STORE_AWAY = "store away"
    """Neither: code 1, or 503."""
    UNANSWERED = "no answer"


class Asked(msgspec.Struct, frozen=True):
    """One request: by whom, from when to when (monotonic seconds), and what was answered."""

    caller: str
    begin: float
    end: float
    outcome: Outcome
    answer: str = ""


Ask: TypeAlias = Callable[[], tuple[Outcome, str]]
OUTCOMES: Final = {
    **dict.fromkeys((200, ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST), Outcome.LET_IN),
    **dict.fromkeys((503, ResponseCode.SYSTEM_ERROR), Outcome.STORE_AWAY),
}
"""By code or status; all others are TURNED_AWAY."""


class Callers:
    """A context in which each caller asks once in EVERY_S, in a thread of its own; `asked` has all when it is left.

    Two tokens of the store are made for it, one that reads and one that changes a KV value, and NEW_TOKENS that are
    shown once each; the principal of a key and a token of the access file is revoked."""

    def __init__(self, place: Place, topic: str) -> None:
        self.asked: list[Asked] = []
        self._place, self._topic = place, topic
        self._access = place.stage.access
        self._sources = (f"127.77.{n // 250 % 250}.{n % 250 + 1}" for n in itertools.count())
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=item, daemon=True) for item in self._asks().items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def await_all(self, since: float) -> None:
        """Wait until each caller has an answer to a request that it began after `since`; LATE_S at most."""
        end = time.monotonic() + LATE_S
        while time.monotonic() < end:
            if len({one.caller for one in list(self.asked) if one.begin > since}) == len(self._threads):
                return
            time.sleep(PAUSE_S)

    def _asks(self) -> dict[str, Ask]:
        self._change("POST", "/v1/access/revocations", {"credential": REVOKED})
        seen, writer = self._new_token("reader"), self._new_token("operator")
        fresh = iter([self._new_token("reader") for _ in range(NEW_TOKENS)])
        access = self._access
        return {
            KEY: lambda: self._signed(CLIENT_KEY),
            CERTIFICATE: lambda: self._looked_up({"topic": self._topic}, tls=access.observer),
            FILE_TOKEN: lambda: self._who(access.token),
            TOKEN: lambda: self._who(seen),
            WRITER: lambda: self._put(writer),
            NEW_TOKEN: lambda: self._who(next(fresh)),
            REVOKED_KEY_OF: lambda: self._signed(REVOKED_KEY),
            REVOKED_TOKEN: lambda: self._who(access.revoked_token),
            UNKNOWN_KEY: lambda: self._signed("unknown"),
            UNKNOWN_TOKEN: lambda: self._who(new_token().token.reveal()),
        }

    def _run(self, caller: str, ask: Ask) -> None:
        while not self._end.wait(EVERY_S):
            begin = time.monotonic()
            try:
                outcome, answer = ask()
            except (OSError, http.client.HTTPException) as error:
                outcome, answer = Outcome.UNANSWERED, repr(error)
            self.asked.append(Asked(caller, begin, time.monotonic(), outcome, answer))

    def _signed(self, key: str) -> tuple[Outcome, str]:
        request = Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": self._topic}, b"")
        return self._looked_up(dict(AclCredentials(key, CLIENT_SECRET)("", request).ext or {}))

    def _looked_up(self, ext: dict[str, str], tls: Any = None) -> tuple[Outcome, str]:
        """Over a connection of its own from a host of its own: ten bad proofs would shut a host out."""
        server = self._place.servers[0]
        over = Connection(server.port, tls=tls or self._access.stranger, source=next(self._sources))
        try:
            command = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, next(OPAQUES), 0, V4_8_0, ext=ext)
            over.send_command(command)
            reply = over.receive(ANSWER_S)
        finally:
            over.close()
        return OUTCOMES.get(reply.code, Outcome.TURNED_AWAY), f"{reply.code} {reply.remark or ''}"

    def _who(self, token: str) -> tuple[Outcome, str]:
        return self._over_http("GET", "/v1/whoami", token)[:2]

    def _put(self, token: str) -> tuple[Outcome, str]:
        return self._over_http("PUT", "/v1/kv/faults/k", token, {"value": "x"})[:2]

    def _new_token(self, role: str) -> str:
        body = {"principal": "faults", "roles": [role]}
        return str(self._change("POST", "/v1/access/tokens", body)["token"])

    def _change(self, method: str, path: str, body: object) -> Any:
        time.sleep(PAUSE_S)
        outcome, answer, said = self._over_http(method, path, self._access.token, body)
        if outcome is not Outcome.LET_IN:
            raise RuntimeError(f"{method} {path}: {answer}")
        return said

    def _over_http(self, method: str, path: str, token: str, body: object = None) -> tuple[Outcome, str, Any]:
        host, _, port = self._place.http.rpartition(":")
        source = (next(self._sources), 0)
        over = http.client.HTTPConnection(host, int(port), timeout=ANSWER_S, source_address=source)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            over.request(method, path, None if body is None else json.dumps(body), headers)
            response = over.getresponse()
            said = json.loads(response.read())
        finally:
            over.close()
        answer = f"{response.status} {said.get('detail', '')}"
        return OUTCOMES.get(response.status, Outcome.TURNED_AWAY), answer, said
