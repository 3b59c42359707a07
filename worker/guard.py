"""Which requests a peer may make: by its address and its certificate, which give its connection rights, or by the
signature of a request. It is looked at before the request is decoded further, or answered by its bytes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from time import time
from typing import Final

import msgspec
from msgspec.structs import replace

from access.classes import OPERATORS, AccessClass
from access.denials import Denied
from access.description import digest
from access.failures import Failures
from access.first_ends import FirstEnds
from access.limits import unlimited
from access.live import POLL_S, LivePrincipals, Stored
from access.policy import Policy
from access.proof import BadCredential, Proof
from access.records import Records
from access.refusal_log import RefusalLog
from access.refusals import lacks, remark_of
from access.rules_in_force import RulesInForce
from access.standing import Standing
from registry.options.catalogue import Options
from registry.options.networks import is_in, networks_of
from rocketmq_remoting.acl_signature import ACCESS_KEY
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.remoting_command import Command
from worker.alarm import Alarm
from worker.connection_proofs import ConnectionProofs
from worker.counters import Counters
from worker.logs.rate_limited_log import RateLimitedLog
from worker.peer import Peer
from worker.reply import Reply, TopicLimits
from worker.rights import admits, admits_anywhere, caller_of, is_barred, ways_of
from worker.signatures import Signatures
from worker.unjudged import CHANGES, unjudged

__all__ = ["ADMITTED", "CHANGED", "Guard", "Verdict"]

ADMIN: Final = AccessClass.ADMIN
CHANGED: Final = Reply(ext={"changed": "true"}, denied=True)
"""To a data version (322) that is refused: a broker that gets an error takes it for "not changed", and never registers
again; so it registers, and logs that this is refused."""
LONG_BODY: Final = 256 << 10
"""Bytes of a body whose signature is verified in a thread: it takes longer than a time slice."""
ENDED_S: Final = 86_400.0
"""How long ago a credential may have come to its end while no worker ran, so that it is reported."""

logger = logging.getLogger(__name__)
refusals = RefusalLog(logger)
log = RateLimitedLog(logger)


class Verdict(msgspec.Struct, frozen=True):
    """What comes of a request: the reply that refuses it, or None; what its signature proves, None without one.

    `topics` are patterns, each of which has to match what a registration has; `generation` is of the principals in
    force. `by_bytes`: the signature alone admits the request, from wherever the same bytes come. `observed`: it is
    answered though the rules refuse it. `ends`: its connection is to be closed behind the reply. `operates`: operators
    may ask it, and the caller is one."""

    refusal: Reply | None = None
    proof: Proof | None = None
    topics: TopicLimits | None = None
    generation: int = 0
    by_bytes: bool = False
    observed: bool = False
    ends: bool = False
    operates: bool = False

    @property
    def is_for_bytes(self) -> bool:
        """Whether the same bytes may be answered the same over other connections that have the right: not where a
        signature was only a part of what admitted them, nor where nothing did."""
        return not self.observed and (self.proof is None or self.by_bytes)


ADMITTED: Final = Verdict()


class Guard:
    """The rules and principals of one worker. `clock` gives Unix seconds, and `sleep` waits for seconds of it."""

    def __init__(
        self,
        options: Options,
        counters: Counters,
        clock: Callable[[], float] = time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._options = options
        self._policy = Policy.of(options)
        self._proxies = networks_of(options.proxy_trusted_cidrs)
        self._counters = counters
        self._clock = clock
        self._ends = Alarm(clock, sleep)
        self._live = LivePrincipals(options.access_file, partial(counters.security.add, "config"))
        self._plain = Standing(0)
        self.failures = Failures()  # the hosts of bad proofs
        self.records: Final = Records()  # what the store is to know
        self._signatures = Signatures(self._policy, self.records.uses.note, clock)
        self.shown: Final = ConnectionProofs(self._policy, counters, clock)  # what certificates prove
        self._first_ends = FirstEnds()
        counters.first_ends = self.first_ends
        counters.last_reload = lambda: self._live.last_reload_successful
        self._changed: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._take()
        self._note_rules()

    async def run(self) -> None:
        """Look at the access file each second, and at ends of credentials and certificates when they come."""
        while True:
            await self._ends.wait(POLL_S)
            now = self._clock()
            read = await asyncio.to_thread(self._live.read, now) if self._live.has_file else None
            is_other = self._live.take_read(read)
            if is_other or self._ends.is_over(now):
                self._take()
            if is_other:
                self._note_rules()

    def take_stored(self, stored: Stored, *, lost_writes: bool = False) -> Mapping[str, str]:
        """Judge by what the store has now, and return what it has no note of; all as `LivePrincipals` has it."""
        if self._live.take(stored, lost_writes=lost_writes):
            self._take()
        return self._live.unnoted_with_owners()

    def _take(self) -> None:
        """Judge by the principals of now: all rights and proofs are void."""
        self._principals, now = self._live.principals, self._clock()
        self._signatures.principals = self._principals
        self._ends.set(self._principals.next_expiry(now))
        self.records.note_ends(self._principals.ended(now - ENDED_S, now))
        self.has_principals = len(self._principals) > 0
        self._plain = Standing(self._plain.generation + 1)
        self.shown.clear()
        for changed in self._changed:
            changed()

    def _note_rules(self) -> None:
        rules = RulesInForce.of(self._options, digest(self._live.description), self._live.change)
        self.records.note_rules(rules)

    def when_changed(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when the rights of all connections, and all proofs, are void."""
        self._changed.append(changed)

    def identified(self, peer: Peer) -> None:
        """Give a connection its rights: it is known where it comes from, and a TLS handshake is over."""
        if peer.tls is not None:
            self._counters.security.add("tls", "allowed")
        self.admit(peer)

    def admit(self, peer: Peer) -> None:
        """Give a peer the rights that need no signature, if those that it has are not of the principals of now."""
        generation, is_sure = self._plain.generation, self._live.knows_revoked
        if peer.standing.generation == generation:
            return
        shown = self.shown.standing(peer, self._principals, generation, is_sure=is_sure)
        peer.standing = standing = shown or self._plain
        caller = caller_of(peer)
        if standing.proof is not None and is_sure:
            caller = replace(caller, mtls=unlimited(standing.proof.principal))
            self._ends.add(standing.proof.expires)
        peer.rights = int(self._policy.classes(caller)) & ~standing.barred

    def first_ends(self) -> Iterator[tuple[str, float]]:
        """Yield when the first key, token and certificate in use end: `access.first_ends`."""
        return self._first_ends.read(self._principals, self._clock(), self.shown.first_end())

    def is_signed(self, command: Command) -> bool:
        """Return whether a request shows a key, where there are any."""
        return self.has_principals and command.ext is not None and ACCESS_KEY in command.ext

    def holds(self, verdict: Verdict) -> bool:
        """Return whether the rules admit a request as they did, as far as its signature counts."""
        is_in_force = verdict.proof is None or verdict.generation == self._plain.generation
        return is_in_force and not verdict.observed

    def proves(self, fields: Mapping[str, str], body: bytes, proof: Proof | None) -> bool:
        """Return whether a request with a key proves what one like it did: the same principal, or nothing where no
        principal has that key."""
        try:
            found = self._signatures.proof_of(fields, body)
        except BadCredential:
            return False
        if found is None or proof is None:
            return found is proof
        self._counters.security.add("authn", "allowed")
        return found.principal is proof.principal

    def judge(
        self, command: Command, peer: Peer, needs: AccessClass, done: Callable[[Verdict], None]
    ) -> None:
        """Judge a request of these classes; `done` gets the verdict, late where a long body is signed."""
        if len(command.body) > LONG_BODY and self.is_signed(command):
            task = asyncio.get_running_loop().create_task(self._judge_late(command, peer, needs, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        try:
            proof = self._signatures.proof(command, needs)
        except BadCredential as error:
            done(self._unproven(command, peer, needs, error))
        else:
            done(self._verdict(command, peer, needs, proof))

    async def _judge_late(
        self, command: Command, peer: Peer, needs: AccessClass, done: Callable[[Verdict], None]
    ) -> None:
        """Verify in a thread: what takes a millisecond would keep all other peers waiting."""
        principals, proof = None, None
        try:
            while principals is not self._principals:  # others may have been taken meanwhile
                principals = self._principals
                proof = await asyncio.to_thread(self._signatures.proof, command, needs)
        except BadCredential as error:
            done(self._unproven(command, peer, needs, error))
        else:
            done(self._verdict(command, peer, needs, proof))

    def _verdict(self, command: Command, peer: Peer, needs: AccessClass, proof: Proof | None) -> Verdict:
        self.admit(peer)
        if proof is not None:
            self._counters.security.add("authn", "allowed")
        proofs = [one for one in (proof, peer.standing.proof) if one is not None]
        topics = None
        if proofs and not self._live.knows_revoked and not needs & ~CHANGES & peer.rights:
            observed = Verdict(None, proof, observed=True)
            return observed if self._policy.observes else Verdict(unjudged(peer, proofs[0]))
        if not needs & peer.rights:
            barred = is_barred(command, peer, needs, proof)
            if barred or not admits(self._policy, command, peer, needs, *proofs):
                return self._refused(command, peer, needs, proof)
            if ways := ways_of(self._policy, command, peer, needs, proofs):
                topics = TopicLimits(ways, partial(self._refuses, command, peer, needs, proof))
        if needs & OPERATORS:
            self._counters.security.add("authz", "allowed")
        by_bytes = proof is not None and admits_anywhere(self._policy, command, needs, proof)
        operates = bool(needs & ADMIN) and admits(self._policy, command, peer, ADMIN, *proofs)
        return Verdict(None, proof, topics, self._plain.generation, by_bytes, operates=operates)

    def _unproven(self, command: Command, peer: Peer, needs: AccessClass, error: BadCredential) -> Verdict:
        """Refuse a request whose signature is not that of its key, though others need no key for it. A host that is
        shut out for such guesses opens no connection, and has no more of them over one that it has."""
        self._counters.security.add("authn", error.result)
        ends = False
        if not self._policy.observes:
            ends = bool(self.failures.shut_s(peer.host)) and not is_in(peer.host, self._proxies)
            self.failures.add(peer.host)
        log.warning(
            "a signature of %s is not accepted: %s; correct its key, or find out what guesses there",
            peer.address,
            error,
        )
        self.admit(peer)
        return replace(self._refused(command, peer, needs, None), ends=ends)

    def _refuses(self, command: Command, peer: Peer, needs: AccessClass, signed: Proof | None) -> bool:
        return self._refused(command, peer, needs, signed).refusal is not None

    def _refused(self, command: Command, peer: Peer, needs: AccessClass, signed: Proof | None) -> Verdict:
        """Refuse a request with this signature, or with none that is good: an unknown key reads as a bad signature."""
        self._counters.security.add("authz", "denied")
        proof = signed or peer.standing.proof
        actor = f"wire:{peer.address}" if proof is None else proof.actor
        lacking = lacks(None if proof is None else proof.principal, needs)
        remark = remark_of(needs, self._policy.needs(needs, "remoting") + lacking, actor)
        observes = self._policy.observes
        if proof is None or observes:  # a caller that is known has an entry, but none for what is answered
            refusals.refused(peer.host, needs, remark, answered=observes)
        if observes:
            return Verdict(None, signed, observed=True)
        if proof is not None:
            self.records.denials.note(Denied(actor, str(command.code)), needs, peer.address)
        if command.code == RequestCode.QUERY_DATA_VERSION:
            return Verdict(CHANGED)
        return Verdict(Reply(ResponseCode.NO_PERMISSION, remark=remark, denied=True))
