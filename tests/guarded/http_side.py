"""The HTTP application over a real store, asked in this process: its gate, tokens and views."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import redis as redis_py

from api.app import create_app
from api.counters import COUNTERS
from api.name_server import origin
from registry.options.catalogue import Options
from tests.guarded.world import HttpRequest, Outcome

PROBLEMS: Final = frozenset({400, 401, 403, 429})


class Seen(NamedTuple):
    """What came of a request; `json` is the answer's, if it is some."""

    outcome: Outcome
    json: Any


class HttpSide:
    """One process."""

    def __init__(self, options: Options, redis: redis_py.Redis) -> None:
        self._app = create_app(options, redis=redis)
        self._app.after_request(self._note_actor)
        self._client = self._app.test_client()
        self._actor = ""

    def ask(self, request: HttpRequest) -> Seen:
        """Send a request."""
        self._actor = ""
        denied = self._denied()
        reply = self._client.open(
            request.path,
            method=request.method,
            json=request.body,
            headers=dict(request.headers),
            environ_overrides={"REMOTE_ADDR": request.host},
        )
        result = "answered"
        if (
            reply.status_code in PROBLEMS
            and reply.json is not None
            and _is_of_access(kind := _kind(reply.json))
        ):
            result = f"{reply.status_code} {kind}"
            if "invalid_token" in reply.headers.get("WWW-Authenticate", ""):
                result += " invalid_token"
            assert (reply.status_code == 401) == ("WWW-Authenticate" in reply.headers)
        json = reply.json if reply.is_json else None
        return Seen(Outcome(result, self._actor, self._denied() > denied), json)

    def look_at_file(self) -> None:
        """Look at the access file, which a process does when it is asked to check a token, once a second at most."""
        self._app.extensions["guard"].principals()

    def _note_actor(self, response: Any) -> Any:
        self._actor = origin().actor
        return response

    @staticmethod
    def _denied() -> float:
        return COUNTERS._security.of("authz", "denied").value


def _kind(problem: Mapping[str, Any]) -> str:
    return str(problem.get("type", "")).rpartition(":")[2]


def _is_of_access(kind: str) -> bool:
    return kind in ("unauthenticated", "forbidden", "cross-site", "host-not-allowed", "too-many-requests")
