"""NOTIFY_MIN_BROKER_ID_CHANGE (905): reports to the brokers of a group that its smallest id has changed.

A job process reads the stream of members that enter and leave. Each of several such processes sees every event; the
first to claim it in the store pushes. No request waits for a push, and a failed one is not repeated: brokers also ask
for their group (901).
A push goes where `worker.outgoing` allows.
"""

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from registry import members, settings
from registry.clock import now_ms
from registry.drivers import AsyncDriver
from registry.events.entry import Event, EventKind
from registry.keys import Keys
from registry.options.catalogue import Options, overlay
from registry.plans import Plan, call
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, Command
from rocketmq_remoting.version import CURRENT
from worker import outgoing
from worker.logs.rate_limited_log import RateLimitedLog
from worker.outgoing import Endpoint

SEND_WITHIN_S = 0.3  # RocketMQ's budget
CLAIM_S = 60
SENDS_MOST = 64  # to one host at a time: a group whose smallest id goes and comes has a push for each
STALE_MS = 30_000  # brokers have asked since

log = RateLimitedLog(logging.getLogger(__name__))
Addresses = dict[int, str]


class MinIdChange(msgspec.Struct, frozen=True):
    """A group whose smallest id changed: its addresses before and after.

    `ha` is the HA address of a newcomer that became the smallest, None when the smallest left."""

    event: Event
    broker: str
    before: Addresses
    after: Addresses
    ha: str | None = None

    def ext(self) -> dict[str, str]:
        """Return the fields of the request."""
        smallest = min(self.after)
        fields = {"minBrokerId": str(smallest), "minBrokerAddr": self.after[smallest]}
        if self.ha is None:
            return fields | {"offlineBrokerAddr": self.before[min(self.before)]}
        return fields | {"haBrokerAddr": self.ha}

    def receivers(self) -> tuple[str, ...]:
        """Return the addresses to notify: all that stay; of a newcomer's group all others, or itself if it is alone."""
        smallest = self.after[min(self.after)]
        if self.ha is None or len(self.after) == 1:
            return tuple(self.after.values())
        return tuple(address for address in self.after.values() if address != smallest)


def changes(group: Sequence[Event]) -> list[MinIdChange]:
    """Return the changes of smallest ids in a group of events (RocketMQ RouteInfoManager.notifyMinBrokerIdChanged)."""
    by_broker: dict[str, list[Event]] = {}
    for event in group:
        if event.kind in (EventKind.BROKER_REGISTERED, EventKind.BROKER_REMOVED):
            by_broker.setdefault(event.get("broker"), []).append(event)
    candidates = (_change(broker, events) for broker, events in by_broker.items())
    return [change for change in candidates if change is not None]


def _change(broker: str, events: list[Event]) -> MinIdChange | None:
    before, after, last = _before(events[0]), _addresses(events[-1]), events[-1]
    if not before or not after or min(before) == min(after):
        return None
    if last.kind == EventKind.BROKER_REMOVED:
        return MinIdChange(last, broker, before, after) if min(after) > min(before) else None
    if last.cause == "first" or min(after) > min(before) or int(last.get("id")) != min(after):
        return None
    return MinIdChange(last, broker, before, after, ha=last.get("ha"))


def _before(event: Event) -> Addresses:
    addresses, number = _addresses(event), int(event.get("id"))
    if event.kind == EventKind.BROKER_REMOVED:
        return addresses | {number: event.get("addr")}
    addresses.pop(number, None)
    return addresses


def _addresses(event: Event) -> Addresses:
    return {int(number): address for number, address in json.loads(event.get("addrs")).items()}


class Pusher:
    """Pushes for the events of members; `options` are what the process was started with."""

    def __init__(self, options: Options, driver: AsyncDriver, keys: Keys) -> None:
        self._given = options
        self._driver = driver
        self._keys = keys
        self._opaque = itertools.count(1)
        self._sends: set[asyncio.Task[None]] = set()
        self._to_host: Counter[str] = Counter()

    async def apply(self, group: Sequence[Event]) -> None:
        """Push what the events of one script ask for, if no other process does, and under the options of now."""
        if not (found := changes(group)):
            return
        options = overlay(self._given, await self._driver.run(settings.read(self._keys)))
        if not options.notify_min_broker_id_changed:
            return
        for change in found:
            if await self._driver.run(_claimed(self._keys, change)):
                self._push(change, await self._driver.run(_places(self._keys, change, options)))

    def _push(self, change: MinIdChange, places: Sequence[Endpoint]) -> None:
        frame = encode(
            Command(
                RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
                next(self._opaque) & 0x7FFFFFFF,
                flag=ONEWAY_FLAG,
                version=CURRENT,
                ext=change.ext(),
            )
        )
        for place in places:
            host, _ = place
            if self._to_host[host] >= SENDS_MOST:
                log.warning(
                    "905 is not sent to broker %s:%d: %d are under way to its host; the broker asks for its group by "
                    "itself",
                    *place,
                    SENDS_MOST,
                )
                continue
            self._to_host[host] += 1
            task = asyncio.get_running_loop().create_task(send(place, frame))
            self._sends.add(task)
            task.add_done_callback(partial(self._sent, host))

    def _sent(self, host: str, task: asyncio.Task[None]) -> None:
        self._sends.discard(task)
        self._to_host[host] -= 1
        if not self._to_host[host]:
            del self._to_host[host]


def _claimed(keys: Keys, change: MinIdChange) -> Plan[bool]:
    """Claim a push; False if it is not due, or another process's. If the smallest id left, acting masters need it."""
    if change.ha is None and (yield call("HGET", keys.broker(change.broker), "acting")) != "1":
        return False
    if (yield from now_ms()) - change.event.id.ms > STALE_MS:
        return False
    return bool((yield call("SET", keys.pushed(str(change.event.id)), "1", "NX", "EX", CLAIM_S)))


def _places(keys: Keys, change: MinIdChange, options: Options) -> Plan[list[Endpoint]]:
    """Return where those that are to be notified may be reached: of a big group, those of the smallest ids."""
    group = yield from members.brokers(keys, [change.broker])
    hosts = {member.address: member.hosts for broker in group for member in broker.members}
    places = []
    for address in change.receivers():
        place = outgoing.endpoint(address, hosts.get(address, ()), options)
        if place is not None:
            places.append(place)
            continue
        log.warning(
            "905 is not sent to broker %s: it came from elsewhere; list its network in probeNetworks, or its balancer "
            "in proxyTrustedCidrs, else it learns of its group when it asks",
            address,
        )
    return places[: outgoing.MOST]


async def send(to: Endpoint, frame: bytes) -> None:
    """Write one frame to a broker's own port, over a connection of its own, and forget it."""
    try:
        async with asyncio.timeout(SEND_WITHIN_S):
            await _send(to, frame)
    except (OSError, TimeoutError) as error:
        log.warning(
            "905 did not reach broker %s:%d: %s; not repeated, the broker asks for its group by itself",
            *to,
            error,
        )


async def _send(to: Endpoint, frame: bytes) -> None:
    writer = await outgoing.open_connection(to)
    try:
        writer.write(frame)
        await writer.drain()
    finally:
        writer.close()
    await writer.wait_closed()
