"""List requests: answered with the kept reply, or with one that is made once for all that wait for it.

Few lists are made at once, each with pauses, and only one is due to a connection at a time (`Peer.await_long`): so
neither reading nor memory grows with the number of requests, and lookups are answered between."""

from functools import partial
from typing import Final

from msgspec.structs import replace

from registry.long_work.limiter import Limiter
from registry.plans import Plan, within
from rocketmq_remoting.command import Command
from rocketmq_remoting.remoting_command import ONEWAY_FLAG
from worker import dispatch
from worker.assembly import Assembly
from worker.cache.filling import Answered
from worker.cache.lists import ListFill, ListKey
from worker.peer import Peer
from worker.reply import Reply

AT_ONCE: Final = 2
"""Lists that are read at once; the others wait in line."""
NOTHING: Final = Reply()


class ListFilling:
    """The lists of one worker; `answered` gets each request with its reply."""

    def __init__(self, parts: Assembly, answered: Answered) -> None:
        self._parts = parts
        self._lists = parts.lists
        self._answered = answered
        self._limiter = Limiter(AT_ONCE)

    def answer(self, key: ListKey, command: Command, peer: Peer) -> None:
        """Answer a request for a list; the store alone tells what is true while the stream is not followed."""
        if command.flag & ONEWAY_FLAG:
            self._answered(NOTHING, command, peer)  # nothing is sent
            return
        peer.await_long()
        reply = self._lists.get(key) if self._parts.follower.connected else None
        if reply is not None:
            self._answered(reply, command, peer)
            return
        fill = self._lists.fill_under_way(key)
        if fill is not None:
            fill.waiting.append((command, peer))
            return
        fill = self._lists.begin(key)
        fill.waiting.append((command, peer))
        dispatch.begin(
            self._parts.request(command, peer),
            self._parts.driver,
            partial(self._end, fill),
            lambda plan: within(self._limiter, self._read(fill, plan)),
        )

    def _read(self, fill: ListFill, plan: Plan[Reply]) -> Plan[Reply]:
        self._lists.read(fill)
        return (yield from plan)

    def _end(self, fill: ListFill, reply: Reply) -> None:
        followed = self._parts.follower.connected
        self._lists.end(fill, reply if followed else replace(reply, depends=None))
        for command, peer in fill.waiting:
            self._answered(reply, command, peer)
