"""Watchers of a running service, and all that they are sent; the stream, as a reader of its own has it."""

import http.client
import json
import random
import threading
import time
from contextlib import suppress
from typing import Any

import redis as redis_py

from api.watch import WatchQuery
from registry.events.entry import Event, EventId
from registry.events.watched import Wanted
from registry.keys import Keys
from testbed.watchers import Fleet, SseWatcher
from tests.api.http import a_broker
from tests.watch.judgement import Opened, Received

TOPICS = [f"T{number}" for number in range(6)]
FILTERS = ["", "", "topic=T1", "broker=b1", "kind=drain_changed,broker_removed", "cluster=c1", "actor=http"]
TURN_S = 0.1


class RecordedWatcher(SseWatcher):
    """A watcher that keeps all that it is sent."""

    def __init__(self, query: str, after: str) -> None:
        super().__init__(f"/v1/watch?{query}", self._received)
        self.last_id = after
        fields = dict(part.split("=") for part in query.split("&") if part)
        self.wanted: Wanted = WatchQuery.model_validate(fields).wanted
        self.seen: list[Opened | Received] = [Opened(EventId.parse(after))] if after else []
        self.events: list[Event] = []
        self.resets = 0

    def _received(self, _: SseWatcher, __: str, at: str, data: bytes) -> None:
        message = json.loads(data)
        self.resets += message["reset"] is not None
        ids = tuple(EventId.parse(entry["id"]) for entry in message["events"])
        self.seen.append(Received(EventId.parse(at), ids, message["reset"]))
        self.events += [Event.of(entry["id"], entry["fields"]) for entry in message["events"]]

    def take(self, data: bytes) -> None:
        before = self.last_id
        super().take(data)
        if self.last_id != before:
            position = EventId.parse(self.last_id)
            if not self.seen or self.seen[-1].position != position:
                self.seen.append(Opened(position))


class StreamReader(threading.Thread):
    """Keeps the groups of a stream, also those that are trimmed later."""

    def __init__(self, redis: redis_py.Redis, keys: Keys) -> None:
        super().__init__(daemon=True)
        self._redis, self._keys = redis, keys
        self.groups: list[list[Event]] = [[]]
        self._over = threading.Event()

    def run(self) -> None:
        at = "0"
        while not self._over.is_set():
            with suppress(redis_py.ConnectionError, redis_py.TimeoutError):
                reply: Any = self._redis.xread({self._keys.events: at}, count=500, block=50)
                for event_id, fields in reply[0][1] if reply else ():
                    at = event_id
                    event = Event.of(event_id, fields)
                    self.groups[-1].append(event)
                    if event.is_last_of_group:
                        self.groups.append([])

    def whole(self, last: str) -> list[list[Event]]:
        """Return all groups up to this entry."""
        end = EventId.parse(last)
        while not any(group and group[-1].id >= end for group in self.groups):
            time.sleep(0.02)
        self._over.set()
        self.join()
        return self.groups[:-1]


class Changes(threading.Thread):
    """Registers, drains, removes and sets until `stop`, over HTTP; errors are those of faults, and repeated."""

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._random = random.Random(seed)
        self._over = threading.Event()
        self.made = 0

    def run(self) -> None:
        while not self._over.wait(0.005):
            with suppress(OSError, http.client.HTTPException):
                self._ask(*self._next())
                self.made += 1

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _next(self) -> tuple[str, str, Any]:
        name = f"b{self._random.randrange(4)}"
        number = int(name[1])
        kind = self._random.randrange(10)
        if kind == 0:
            return "PUT", f"/v1/brokers/{name}/drain", {"owner": "test", "reason": str(self._random.random())}
        if kind == 1:
            return "DELETE", f"/v1/brokers/{name}/drain", None
        if kind == 2:
            return (
                "DELETE",
                f"/v1/brokers/{name}/members/0?cluster=c{number % 2}&brokerAddr=127.0.2.{number}:10911",
                None,
            )
        if kind == 3:
            return "PUT", "/v1/kv/n/k", {"value": str(self._random.random())}
        topics = self._random.sample(TOPICS, self._random.randrange(1, 5))
        version = {"timestamp": 1700000000000, "counter": self._random.randrange(1, 1 << 30)}
        named = [{"topicName": topic, "readQueueNums": self._random.randrange(1, 9)} for topic in topics]
        of = {"cluster": f"c{number % 2}", "brokerName": name, "brokerAddr": f"127.0.2.{number}:10911"}
        return "POST", "/v1/brokers", a_broker(**of, dataVersion=version, topics=named)

    def _ask(self, method: str, path: str, body: Any) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            given = None if body is None else json.dumps(body)
            connection.request(method, path, given, {"Content-Type": "application/json"})
            connection.getresponse().read()
        finally:
            connection.close()


def come_and_go(fleet: Fleet, rng: random.Random) -> None:
    """End some connections, as a network does: their watchers come back where they were."""
    for watcher in fleet.watchers:
        if watcher.sock is not None and rng.random() < 0.02:
            with suppress(OSError):
                watcher.sock.shutdown(2)
