"""A registration that changes something, carried out: decided dry by `lua/register.lua`, then written.

This module builds the rows that the decision asks for and hands them back under the token of the decision, so that
nobody can have come between. Large first tables go in chunks under a claim, what is left over in slices. When only
topics of a known master changed, and not many, `lua/change.lua` alone does it.
"""

import time
from collections.abc import Collection, Mapping
from itertools import groupby, islice
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from registry.decision import Decision
from registry.keys import Keys
from registry.known_tables import TEXTS_MOST, KnownTable, KnownTables
from registry.plans import Act, Argument, Batch, Plan, ScriptCall, as_json, call
from registry.queue_text import current, queue_text
from registry.registering import Registration, Signature
from registry.slices import COMMIT_MAX_BYTES, TOPICS_MAX, Counts, Row, Slice, arguments, slicing
from registry.tables import PAGE, parts, scan
from registry.turns import in_turns
from remoting.data_version import DataVersion
from remoting.known_slices import Slices
from remoting.registration import RegisterBrokerBody, reading_register_broker_body
from remoting.steps import Steps
from remoting.topic_queue_mapping import encode_mapping_info

CLAIM_MS = 2000
TOPICS_A_STEP = 200
Reply: TypeAlias = list[Any]  # of lua/register.lua, described there


class _Asked(msgspec.Struct, omit_defaults=True):
    """The JSON argument of `lua/register.lua`, described there."""

    act: Act
    name: str
    cluster: str
    id: str
    member: str
    dv: str
    state: int
    sig: str
    timeout: int
    counts: Counts
    last: int
    single: int
    ha: str | None = None
    zone: str | None = None
    acting: str | None = None
    filters: str | None = None
    owner: str | None = None
    dry: int = 0
    token: str = ""
    claim: str | None = None
    leftovers: int = 0
    applied: int = -1


class _Table(msgspec.Struct, frozen=True):
    """What a registration changes in the topic tables, and whether they then are what its body says.

    Without `body`, which was not read then, nothing is said of filter servers or the number of topics. `texts` is
    what is then stored of the topics that the body names, None of many."""

    slices: list[Slice]
    applied: bool
    body: RegisterBrokerBody | None = None
    texts: dict[str, str] | None = {}


class Attempt:
    """One registration on its way: what was decoded of it, and the decision that is being carried out."""

    def __init__(
        self,
        keys: Keys,
        registration: Registration,
        act: Act,
        mark: Signature,
        owner: str | None,
        delete_missing: bool,
        tables: KnownTables | None,
    ) -> None:
        self.keys = keys
        self.registration = registration
        self.act = act
        self.mark = mark
        self.owner = owner
        self.delete_missing = delete_missing
        self._tables = None if delete_missing else tables
        self._slices = Slices()
        self._body: RegisterBrokerBody | None = None
        self.event_id = ""  # the last entry that attempts in vain have written
        self.owed: set[str] = set()  # broker names that they left something to do of

    @property
    def version(self) -> DataVersion:
        """The body is read, unless the signature tells."""
        if self.mark.version is not None:
            return self.mark.version
        assert self._body is not None
        return self._body.data_version

    def _read(self, decided: Decision | None = None) -> Plan[RegisterBrokerBody]:
        """The body, read at the first call, but for what is known to be stored. Raises BodyError."""
        known = self._known(decided)
        slices = None if known is None else known.slices
        if self._body is None or (self._slices.skipped and self._slices.known is not slices):
            r = self.registration
            self._slices = Slices(slices)
            reading = reading_register_broker_body(
                r.body,
                version=r.version,
                compressed=r.compressed,
                now_ms=int(time.time() * 1000),
                slices=self._slices,
            )
            self._body = yield from in_turns(reading)
        return self._body

    @property
    def is_news(self) -> bool:
        """Whether it is known to say something else than the last one."""
        known = self._last()
        return known is not None and known.mark != self.mark

    def _last(self) -> KnownTable | None:
        return None if self._tables is None else self._tables.last(self.registration.member)

    def _known(self, decided: Decision | None) -> KnownTable | None:
        if self._tables is None or decided is None or not decided.every:
            return None
        return self._tables.get(self.registration.member, decided.at)

    def _remember(self, decided: Decision, table: _Table, done: Reply) -> None:
        """A table that is stored as its body says need not be read again."""
        if self._tables is None:
            return
        if not (table.applied and decided.every and self._slices.unique):
            self._tables.drop(self.registration.member)
            return
        before = self._known(decided)
        texts = table.texts
        if self._slices.skipped and texts is not None:
            texts = None if before is None or before.texts is None else before.texts | texts
        if texts is not None and len(texts) > TEXTS_MOST:
            texts = None
        state = decided.done(done[2], int(done[3]))
        known = KnownTable(self.mark, state, self._slices.found, texts)
        self._tables.put(self.registration.member, known)

    def _rename(self, known: KnownTable | None) -> None:
        """The same table has another version now."""
        if self._tables is not None and known is not None:
            self._tables.put(self.registration.member, replace(known, mark=self.mark))

    def once(self) -> Plan[Reply | None]:
        """Decide and write; the script's last word, or None when somebody came between and all begins anew."""
        decided = yield from self._decide()
        if not isinstance(decided, Decision):
            return decided
        if decided.same and not decided.first:
            reply = yield from self._write(decided, _Table([], applied=True))
            self._rename(self._known(decided))
            return reply
        body = yield from self._read(decided)
        if decided.first and len(body.topics) == 1:
            return ["single"]  # before anything is claimed
        table = yield from self._table(decided, body)
        claims = decided.first and len(table.slices) > 1
        reply = yield from (self._write_claimed if claims else self._write)(decided, table)
        if reply is not None and reply[0] == "done":
            self._remember(decided, table, reply)
        return reply

    def change(self) -> Plan[Reply | None]:
        """Write what changed since the last registration, if that is known and said the same but for topics.

        None when it cannot be done so."""
        known, mark, r = self._last(), self.mark, self.registration
        if known is None or r.id != 0 or known.mark.identity != mark.identity:
            return None
        before, version = known.mark.version, mark.version
        if before is None or version is None or before == version:
            return None
        table = _Table([], applied=True)
        if known.mark.content != mark.content:
            table = yield from self._table(known.decided, (yield from self._read(known.decided)))
        if len(table.slices) > 1 or not table.applied:
            return None
        reply = yield self._change(known, before, version, table)
        if reply[0] == "differs":
            return None
        if table.body is None:
            self._rename(known)
        else:
            self._remember(known.decided, table, reply)
        return reply  # type: ignore[no-any-return]

    def _change(
        self, known: KnownTable, before: DataVersion, version: DataVersion, table: _Table
    ) -> ScriptCall:
        keys, r = self.keys, self.registration
        counts, values = arguments(table.slices[0] if table.slices else None, table.slices)
        asked = {
            "act": self.act,
            "name": r.name,
            "cluster": r.cluster,
            "addr": r.address,
            "member": r.member,
            "epoch": known.decided.epoch,
            "gen": known.decided.generation,
            "sig": self.mark.content,
            "dv": version.text(),
            "was_sig": known.mark.content,
            "was_dv": before.text(),
            "owner": self.owner or "",
            "counts": counts,
        }
        broker, member = keys.broker(r.name), keys.member(r.member)
        names = (keys.events_meta, broker, member, keys.alive(r.member), keys.leases)
        return ScriptCall("change", names, (as_json(asked), *values))

    def _decide(self) -> Plan[Decision | Reply | None]:
        """Ask without writing; a refusal is asked for once more, to be written to the stream."""
        if self.mark.version is None:
            yield from self._read()
        reply: Reply = yield self._script(self._asked(Counts(), dry=1))
        if reply[0] == "refused":
            reply = yield self._script(self._asked(Counts(), (yield from self._read())))
            return self._again(reply)
        return Decision.of(reply) if reply[0] == "go" else self._again(reply)

    def _again(self, reply: Reply) -> Reply | None:
        """None for a reply after which all begins anew."""
        if reply[0] not in ("again", "changed", "go", "lost"):
            return reply
        if reply[0] in ("again", "changed"):
            self.event_id = reply[1] or self.event_id
            self.owed.update(reply[2:])
        return None

    def _asked(self, counts: Counts, body: RegisterBrokerBody | None = None, *, dry: int = 0) -> _Asked:
        r, version = self.registration, self.version
        filters = None
        if body is not None and body.filter_servers is not None:
            filters = as_json(body.filter_servers).decode()
        return _Asked(
            act=self.act,
            name=r.name,
            cluster=r.cluster,
            id=str(r.id),
            member=r.member,
            dv=version.text(),
            state=version.state_version,
            sig=self.mark.content,
            timeout=r.timeout_ms,
            counts=counts,
            last=1,
            single=int(body is not None and len(body.topics) == 1),
            ha=r.ha,
            zone=r.zone,
            acting=None if r.acting is None else str(int(r.acting)),
            filters=filters,
            owner=self.owner,
            dry=dry,
        )

    def _script(self, asked: _Asked, values: tuple[Argument, ...] = ()) -> ScriptCall:
        keys, r = self.keys, self.registration
        return ScriptCall(
            "register",
            (keys.events_meta, keys.broker(r.name), keys.member(r.member), keys.pending(r.name)),
            (as_json(asked), *values),
        )

    def _table(self, decided: Decision, body: RegisterBrokerBody) -> Plan[_Table]:
        """What the decision makes of the body, against what is stored under the broker's epoch."""
        if not decided.writes:
            return _Table([], applied=True, body=body)
        name = self.registration.name
        known = self._known(decided)
        if known is not None and known.texts is not None and known.texts.keys() >= body.topics.keys():
            stored = known.texts
        else:
            only = None if self.delete_missing else body.topics
            stored = yield from self._stored(self.keys.topics_of(name), decided, only)
        changes = yield from in_turns(_changes(body, stored, decided, self.delete_missing))
        mappings = (yield from self._mappings(decided, body)) if decided.every else []
        slices = yield from in_turns(slicing(name, "register", changes.topics, mappings))
        return _Table(slices, not changes.kept_otherwise, body, changes.texts)

    def _stored(self, key: str, decided: Decision, only: Collection[str] | None) -> Plan[dict[str, str]]:
        if not decided.epoch:
            return {}
        if only is not None and len(only) <= TOPICS_MAX:
            if not only:
                return {}
            texts = yield call("HMGET", key, *only)
            return current(
                {name: text for name, text in zip(only, texts, strict=True) if text}, decided.epoch
            )
        return (yield from in_turns(_current((yield from scan(key)), decided.epoch)))

    def _mappings(self, decided: Decision, body: RegisterBrokerBody) -> Plan[list[Row]]:
        name = self.registration.name
        wanted = yield from in_turns(_mapping_texts(body, name))
        stored = yield from self._stored(self.keys.mappings_of(name), decided, wanted)
        return [
            Row(topic, stored.get(topic, ""), text)
            for topic, text in wanted.items()
            if stored.get(topic) != text
        ]

    def _write(self, decided: Decision, table: _Table) -> Plan[Reply | None]:
        head, rest = table.slices[:1], table.slices[1:]
        counts, values = arguments(head[0] if head else None, head)
        asked = self._asked(counts, table.body)
        asked.token, asked.applied, asked.last = decided.token, int(table.applied), int(not rest)
        reply: Reply = yield self._script(asked, values)
        if reply[0] != "done" or not rest:
            return self._again(reply)
        return (yield from self._write_rest(table, rest, reply))

    def _write_claimed(self, decided: Decision, table: _Table) -> Plan[Reply | None]:
        """A big first table: slices that nobody sees, then the commit that tells of them all."""
        keys, name = self.keys, self.registration.name
        request = as_json({"act": self.act, "name": name, "hold": CLAIM_MS})
        claimed: Reply = yield ScriptCall("claim", (keys.events_meta, keys.pending(name)), (request,))
        if claimed[0] != "claimed":
            return self._again(claimed)
        claim, leftovers = claimed[1:]
        told, rest = _told_by_commit(table.slices)
        for one in told:
            written = yield Batch(tuple([self._chunk(claim, piece) for piece in one.pieces()]))
            if not all(written):
                return None
        counts, values = arguments(None, told)
        asked = self._asked(counts, table.body)
        asked.token, asked.claim, asked.leftovers = decided.token, claim, leftovers
        asked.applied, asked.last = int(table.applied), int(not rest)
        reply = yield self._script(asked, values)
        if reply[0] != "done" or not rest:
            return self._again(reply)
        return (yield from self._write_rest(table, rest, reply))

    def _chunk(self, claim: str, piece: Slice) -> ScriptCall:
        keys, name = self.keys, self.registration.name
        counts, values = arguments(piece, (piece,))
        request = as_json({"name": name, "claim": claim, "hold": CLAIM_MS, "counts": counts})
        return ScriptCall("chunk", (keys.events_meta, keys.pending(name)), (request, *values))

    def _write_rest(self, table: _Table, rest: list[Slice], done: Reply) -> Plan[Reply | None]:
        """Slices of a live broker; the data version comes with the last, so a broken-off registration is repeated."""
        r = self.registration
        self.event_id, epoch, generation = done[1], done[2], int(done[3])
        for i, one in enumerate(rest):
            counts, values = arguments(one, (one,))
            request: dict[str, object] = {
                "act": self.act,
                "name": r.name,
                "epoch": epoch,
                "gen": generation,
                "cluster": r.cluster,
                "counts": counts,
            }
            if i == len(rest) - 1:
                request |= {
                    "member": r.member,
                    "id": str(r.id),
                    "dv": self.version.text(),
                    "sig": self.mark.content,
                    "applied": str(int(table.applied)),
                }
            event_id, generation = yield ScriptCall(
                "rows", (self.keys.events_meta, self.keys.broker(r.name)), (as_json(request), *values)
            )
            if generation < 0:
                return None
            self.event_id = done[1] = event_id
            done[3] = generation
        return done


class _Changes(msgspec.Struct):
    """What becomes of the topics, what is then stored of those in the body, and whether that is not what it says.

    Of more than are remembered (`registry.known_tables`) it is not said what is stored."""

    topics: dict[tuple[str, str], list[str]]
    texts: dict[str, str] | None
    kept_otherwise: bool


def _changes(
    body: RegisterBrokerBody, stored: Mapping[str, str], decided: Decision, delete_missing: bool
) -> Steps[_Changes]:
    few = len(body.topics) <= TEXTS_MOST
    changes = _Changes({}, {} if few else None, not decided.every and bool(body.mapping_infos))
    topics, texts = changes.topics, changes.texts
    made: dict[tuple[int, int, int, int], str] = {}
    names, configs = iter(body.topics), iter(body.topics.values())
    while part := tuple(islice(names, TOPICS_A_STEP)):
        setups = [
            (one.read_queue_nums, one.write_queue_nums, one.perm, one.topic_sys_flag)
            for one in islice(configs, TOPICS_A_STEP)
        ]
        at = 0
        for (before, setup), run in groupby(zip(map(stored.get, part), setups, strict=True)):
            alike = part[at : at + len([*run])]  # most topics are set up alike
            at += len(alike)
            text = made.get(setup)
            if text is None:
                text = made[setup] = queue_text(body.topics[alike[0]], without_write=decided.strips)
            if before == text:
                pass
            elif before is None or decided.every:
                topics.setdefault((before or "", text), []).extend(alike)
            else:
                changes.kept_otherwise = True
                continue
            if texts is not None:
                texts.update(dict.fromkeys(alike, text))
        yield
    if delete_missing and not body.mapping_infos:
        for i, (topic, text) in enumerate(stored.items()):
            if topic not in body.topic_keys:
                topics.setdefault((text, ""), []).append(topic)
            if i % TOPICS_A_STEP == 0:
                yield
    return changes


def _mapping_texts(body: RegisterBrokerBody, name: str) -> Steps[dict[str, str]]:
    """What is to be stored of the broker's static topics."""
    wanted = {}
    for topic, info in body.mapping_infos.items():
        if info.bname == name:
            wanted[topic] = encode_mapping_info(info).decode()
            yield
    return wanted


def _current(stored: dict[str, str], epoch: str) -> Steps[dict[str, str]]:
    """The fields of this epoch, without it."""
    found = {}
    for part in parts(stored, PAGE):
        found.update(current(dict(part), epoch))
        yield
    return found


def _told_by_commit(slices: list[Slice]) -> tuple[list[Slice], list[Slice]]:
    size = 0
    for i, one in enumerate(slices):
        size += len(one.rows)
        if size > COMMIT_MAX_BYTES:
            return slices[:i], slices[i:]
    return slices, []
