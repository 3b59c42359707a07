"""Replies to requests: encoded, sent, counted and timed."""

from collections.abc import Iterator
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from registry.options.catalogue import Options
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, encode_header
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, SerializeType
from worker import dispatch
from worker.answered_brokers import OF_BROKERS, AnsweredBrokers
from worker.counters import REGISTRATION, SAMPLED, Counters
from worker.peer import Peer
from worker.reply import Reply

__all__ = ["Answering"]

RESULT_OF_ONEWAY: Final = "oneway"


class Answering:
    """Sends the replies of one worker; `numbers` are for requests without an opaque."""

    def __init__(self, counters: Counters, numbers: Iterator[int], options: Options) -> None:
        self._counters = counters
        self._brokers = AnsweredBrokers(counters)
        self._numbers = numbers
        self._forced_json = options.reply_encoding == "json"
        self._begun: dict[int, float] = {}  # by the identity of the command
        self._cached = 0

    def readable(self, command: Command) -> Command:
        """Return a request as it is to be answered: with an opaque, and in JSON if that is forced."""
        if command.opaque is None:
            command = replace(command, opaque=next(self._numbers) & 0x7FFFFFFF)
        if self._forced_json and command.serialize_type:
            command = replace(command, serialize_type=SerializeType.JSON)
        return command

    def begin(self, command: Command) -> None:
        """Note that a request waits for what answers it; `end` follows."""
        self._begun[id(command)] = perf_counter()

    def end(self, reply: Reply, command: Command, peer: Peer) -> None:
        """Answer a request that had to wait."""
        self.send(reply, command, peer)
        seconds = perf_counter() - self._begun.pop(id(command))
        self._counters.took(command.code, seconds)
        if command.code == REGISTRATION:
            self._brokers.took(reply, seconds)

    def send_cached(self, reply: Reply, command: Command, peer: Peer) -> None:
        """Answer a lookup whose reply is cached; one of SAMPLED is timed."""
        self._cached += 1
        if self._cached % SAMPLED:
            self.send(reply, command, peer)
            return
        began = perf_counter()
        self.send(reply, command, peer)
        self._counters.lookups_took(perf_counter() - began, SAMPLED)

    def send(self, reply: Reply, command: Command, peer: Peer) -> None:
        """Answer a request at once; a oneway one has no answer."""
        if command.code in OF_BROKERS and not reply.denied:
            self._brokers.answered(reply, command, peer)
        if reply.refusal:
            self._counters.registrations.limited(reply.refusal)
        if command.flag & ONEWAY_FLAG:
            self._counters.requests.add(command.code, RESULT_OF_ONEWAY)
            return
        denied = ResponseCode.NO_PERMISSION
        self._counters.answered(command.code, denied if reply.denied else reply.code)
        body = reply.body
        try:
            head = encode_header(command.reply(reply.code, remark=reply.remark, ext=reply.ext), len(body))
        except Exception as error:
            reply, body = dispatch.unsendable(command.code, peer, error), b""
            head = encode_header(command.reply(reply.code, remark=reply.remark), 0)
        peer.send((head, body) if body else head)
