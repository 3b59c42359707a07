"""Random requests, as plain data (`tests.guarded.model`): on the wire signed rightly, wrongly and not at all, over HTTP
with tokens of all kinds."""

import json
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

from testbed.broker import Broker, Topic
from tests.guarded.signing import sign
from tests.guarded.world import HttpRequest, Names, WireRequest, World
from tests.guarded.worlds import HOSTS, LOOPBACK, PRIVATE, PROXY

TOPICS, BROKERS, CLUSTERS, NAMESPACES = (
    ("o-1", "o-2", "x-1"),
    ("b-1", "b-2", "x-1"),
    ("c-1", "c-2"),
    ("n-1", "m-1"),
)
CODES: Final = {
    **{105: 10, 106: 6, 206: 1, 224: 1, 304: 1, 311: 0.5, 312: 0.5, 313: 0.5, 101: 1, 219: 1},
    **{103: 3, 104: 1, 322: 3, 901: 1, 904: 4, 217: 1},
    **{100: 1, 102: 0.5, 205: 1, 216: 3, 327: 0.5, 318: 0.5, 319: 0.5, 9999: 0.3, 34: 0.3},
}
"""How often each request code, two of which are none."""
REPLAYED_AS: Final = (105, 216, 205, 100, 904, 101, 106)
LONG: Final = 300_000
"""Bytes of a body whose signature is verified in a thread."""
NO_TOKENS: Final = (
    "Bearer ",
    "Bearer mqns",
    f"Bearer mqns_00000000_{'A' * 43}",
    "Bearer secret",
    "Basic bWU6eA==",
)


class Route(NamedTuple):
    """A route over HTTP, with names in its path."""

    method: str
    path: str
    needs: str
    kinds: tuple[str, ...] | None = ()
    """Of the names that it names, by which its path is filled; None is all there are."""


ROUTES: Final = (
    Route("GET", "/v1/routes/{topics}", "read", ("topics",)),
    Route("GET", "/v1/topics/{topics}", "read", ("topics",)),
    Route("GET", "/v1/kv/{kv}", "read", ("kv",)),
    Route("GET", "/v1/kv/{kv}/k", "read", ("kv",)),
    Route("GET", "/v1/brokers/{brokers}/drain", "read", ("brokers",)),
    *(
        Route("GET", f"/v1/{of}", "read", None)
        for of in ("topics", "clusters", "brokers", "kv", "drains", "limits")
    ),
    Route("POST", "/v1/brokers", "broker", ("clusters", "brokers", "topics")),
    Route("POST", "/v1/brokers/{brokers}/heartbeat", "broker", ("clusters", "brokers")),
    Route(
        "DELETE",
        "/v1/brokers/{brokers}?cluster={clusters}&brokerAddr=127.0.9.9:1",
        "broker",
        ("clusters", "brokers"),
    ),
    Route("POST", "/v1/brokers/{brokers}/write-permission", "admin", ("brokers",)),
    Route("PUT", "/v1/brokers/{brokers}/drain", "admin", ("brokers",)),
    Route("DELETE", "/v1/brokers/{brokers}/drain", "admin", ("brokers",)),
    Route("PUT", "/v1/topics/{topics}", "admin", ("topics", "brokers")),
    Route("DELETE", "/v1/topics/{topics}", "admin", ("topics",)),
    Route("DELETE", "/v1/topics/{topics}?cluster={clusters}", "admin", ("topics", "clusters")),
    Route("PUT", "/v1/kv/{kv}/k", "admin", ("kv",)),
    Route("DELETE", "/v1/kv/{kv}/k", "admin", ("kv",)),
    Route("GET", "/v1/settings", "config"),
    Route("GET", "/v1/options", "config"),
    Route("GET", "/v1/access/principals", "config"),
    Route("GET", "/v1/events", "audit"),
    Route("GET", "/v1/audit", "audit"),
    Route("GET", "/metrics", "metrics"),
    Route("GET", "/healthz", ""),
    *(Route("GET", "/v1/whoami", ""),) * 4,
)
ALL_CLUSTERS: Final = "DELETE", "/v1/topics/{topics}"


class Requests:
    """Draws requests of a world as it is."""

    def __init__(self, dice: Random, world: World) -> None:
        self._dice = dice
        self._world = world
        self._captured: list[WireRequest] = []
        self._numbers = count(1)

    # -- on the wire

    def on_wire(self) -> WireRequest:
        """Return a request; some are the bytes that another peer sent, some have another code than these had."""
        if self._captured and self._dice.random() < 0.25:
            captured, at = self._dice.choice(self._captured), self._dice.random()
            if at < 0.25:
                return captured._replace(code=self._dice.choice(REPLAYED_AS))
            if at < 0.45:
                return captured._replace(fields=_unsigned(captured.fields))
            return captured
        request = self._signed(self._unsigned(self._code()))
        self._captured = [*self._captured[-15:], request._replace(oneway=False)]
        return request

    def _code(self) -> int:
        (code,) = self._dice.choices([*CODES], [*CODES.values()])
        return code

    def _unsigned(self, code: int) -> WireRequest:
        fields, body, topics, brokers = self._asked(code)
        oneway = self._dice.random() < 0.06 and len(body) < LONG  # which is judged behind the next request
        return WireRequest(code, fields, body, topics, brokers, self._dice.random() < 0.5, oneway)

    def _asked(self, code: int) -> tuple[dict[str, str], bytes, tuple[str, ...], tuple[str, ...]]:
        """Return the fields of a request, its body, and the topics and brokers in that."""
        dice = self._dice
        topic, name, cluster = dice.choice(TOPICS), dice.choice(BROKERS), dice.choice(CLUSTERS)
        kv = {"namespace": dice.choice(NAMESPACES), "key": "k", "value": "välue"}
        if code == 103:
            return self._registration()
        if code in (104, 322, 901, 904):
            broker = Broker(name, cluster=cluster, addr=address_of(name, gone=code == 104))
            return broker.identity(), broker.data_version() if code == 322 else b"", (), ()
        if code in (205, 327):
            return {"brokerName": name}, b"", (), ()
        if code == 216:
            named = {"clusterName": cluster} if dice.random() < 0.5 else {}
            return {"topic": topic, **named}, b"", (), ()
        if code == 217:
            brokers = tuple(dice.sample(BROKERS, dice.choice((0, 1, 2))))
            queues = [
                {"brokerName": broker, "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
                for broker in brokers
            ]
            return {"topic": topic}, json.dumps({"queueDatas": queues}).encode(), (), brokers
        if code == 318:
            return {}, b"x" * LONG if dice.random() < 0.1 else b"of=tests\n", (), ()
        fields: Mapping[int, dict[str, str]] = {105: {"topic": topic}, 224: {"cluster": cluster}}
        if code == 105 and dice.random() < 0.1:
            return {"topic": topic, "__ZONE_NAME": "z", "__ZONE_MODE": "true"}, b"", (), ()
        return fields.get(code, kv if code in (100, 101, 102, 219) else {}), b"", (), ()

    def _registration(self) -> tuple[dict[str, str], bytes, tuple[str, ...], tuple[str, ...]]:
        topics = self._dice.choice((("o-1", "o-2"), ("o-1", "x-1"), ("o-1", "o-2", "x-1")))
        name, cluster = self._dice.choice(BROKERS), self._dice.choice(CLUSTERS)
        broker = Broker(name, addr=address_of(name), cluster=cluster, topics=tuple(map(Topic, topics)))
        body = broker.body()
        return broker.ext(body), body, topics, ()

    def _signed(self, request: WireRequest) -> WireRequest:
        """Return the request with a signature: right or wrong, of a key that is known or not, of an empty one."""
        dice = self._dice
        if dice.random() < 0.3:
            return request
        secrets = dict(self._secrets())
        key = dice.choice([*secrets, "unknown", ""] if dice.random() < 0.3 or not secrets else [*secrets])
        secret = dice.choice(secrets.get(key, ("", "another secret")))
        if dice.random() < 0.12:
            secret = "a wrong secret"
        fields = {**request.fields, "AccessKey": key}
        late = dice.choice(
            ({}, {}, {}, {}, {"SecurityToken": "t"}, {"__ZONE_NAME": "z", "__ZONE_MODE": "true"})
        )
        fields["Signature"] = sign(fields, request.body, secret)
        if dice.random() < 0.05 and "topic" in fields:
            fields["topic"] = dice.choice(TOPICS)
        return request._replace(fields={**fields, **late})

    def _secrets(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for principal in self._world.principals.values():
            for key, secrets in principal.keys.items():
                yield key, tuple(secret.text for secret in secrets)

    # -- over HTTP

    def over_http(self) -> HttpRequest:
        """Return a request over HTTP."""
        dice, route = self._dice, self._dice.choice(ROUTES)
        drawn = {
            "topics": dice.choice(TOPICS),
            "brokers": dice.choice(BROKERS),
            "clusters": dice.choice(CLUSTERS),
            "kv": dice.choice(NAMESPACES),
        }
        kinds = route.kinds
        listed = drawn if kinds is None else kinds
        names: dict[str, Names] = {kind: None if kinds is None else (drawn[kind],) for kind in listed}
        if route[:2] == ALL_CLUSTERS:
            names["clusters"] = None
        body = self._body(route, drawn)
        host, headers = self._from()
        return HttpRequest(
            route.method, route.path.format(**drawn), route.needs, names, body, host, headers | self._token()
        )

    def _body(self, route: Route, drawn: Mapping[str, str]) -> object:
        member: dict[str, Any] = {"cluster": drawn["clusters"], "brokerAddr": address_of(drawn["brokers"])}
        queues = {"queueDatas": [{"brokerName": drawn["brokers"]}]}
        bodies: dict[tuple[str, str], object] = {
            ("POST", "/v1/brokers"): {
                **member,
                "brokerName": drawn["brokers"],
                "brokerId": 0,
                "topics": [{"topicName": drawn["topics"]}],
            },
            ("POST", "/v1/brokers/{brokers}/heartbeat"): member,
            ("POST", "/v1/brokers/{brokers}/write-permission"): {"writable": True},
            ("PUT", "/v1/brokers/{brokers}/drain"): {"reason": "test"},
            ("PUT", "/v1/topics/{topics}"): queues,
            ("PUT", "/v1/kv/{kv}/k"): {"value": "v"},
        }
        if route.method == "DELETE" and self._dice.random() < 0.3:
            return {"cluster": self._dice.choice(CLUSTERS)}  # which no view reads
        return bodies.get(route[:2])

    def _from(self) -> tuple[str, dict[str, str]]:
        """Return the TCP peer, and headers that say where the request comes from."""
        dice, headers = self._dice, dict[str, str]()
        host = dice.choice(HOSTS)
        if dice.random() < 0.2:
            host = PROXY
            headers["X-Forwarded-For"] = dice.choice(
                (*HOSTS, f"{LOOPBACK}, {PRIVATE}", f"{PRIVATE}, {PROXY}")
            )
        elif dice.random() < 0.1:
            headers[dice.choice(("X-Forwarded-For", "Forwarded", "Via"))] = LOOPBACK
        if dice.random() < 0.02:
            headers["Host"] = "evil.example"
        if dice.random() < 0.02:
            headers["Origin"] = "http://evil.example"
        return host, headers

    def _token(self) -> dict[str, str]:
        dice = self._dice
        texts = [token.text for one in self._world.principals.values() for token in one.tokens.values()]
        texts += [stored.token.text for stored in self._world.stored.values()]
        if dice.random() < 0.3:
            return {}
        if not texts or dice.random() < 0.08:
            return {"Authorization": dice.choice(NO_TOKENS)}
        text = dice.choice(texts)
        if dice.random() < 0.06:  # another one with its id
            text = text[:14] + text[:13:-1][:43]
            text = f"{text[:14]}{'B' * 42}A"
        return {"Authorization": f"Bearer {text}"}


def _unsigned(fields: Mapping[str, str]) -> dict[str, str]:
    """Return what is left of the fields of a request without its signature."""
    return {name: value for name, value in fields.items() if name not in ("AccessKey", "Signature")}


def address_of(name: str, *, gone: bool = False) -> str:
    """Return where a broker is; of one that is `gone`, where it never was."""
    return f"127.0.{BROKERS.index(name) + 1}.{9 if gone else 1}:10911"
