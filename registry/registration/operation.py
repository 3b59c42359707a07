"""A registration that changes something: decided by the store, compared with the tables, written.

`lua/register.lua` decides without writing (`decision`); the body is read (`body`) and compared with what is stored
(`stored_table`, `diff`); the difference is handed back under the token of the decision (`write`), so that another
writer in between makes it void. When only topics of a cached master changed, and not many, one script does it all
(`reregistration`).
"""

from msgspec.structs import replace

from registry.long_work.time_slices import cooperatively
from registry.plans import Plan
from registry.registration.body import BodyReader
from registry.registration.decision import (
    Again,
    Decision,
    Done,
    End,
    Full,
    Refused,
    SingleTopic,
    register_reply,
)
from registry.registration.diff import NO_DIFF, TOPICS_A_STEP, TableDiff, short_diff, table_diff
from registry.registration.member_table import MemberTable
from registry.registration.request import RegisterContext, names_filter_servers_first
from registry.registration.reregistration import Reregistration, can_reregister
from registry.registration.script_calls import decide_call, is_refused_alone, register_call, register_request
from registry.registration.stored_table import changed_mappings, new_topics, stored_topics
from registry.registration.write import Write, write
from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.registration import RegisterBrokerBody
from rocketmq_remoting.table_blocks import Block


class RegisterOperation:
    """One registration: tried until it is written or refused. Its body is read at most once for all tries."""

    def __init__(self, context: RegisterContext, table: MemberTable) -> None:
        self.context = context
        self._table = table
        self._body = BodyReader(context.registration)
        self._new_topics: int | None = None  # of its topics, once the limit of the namespace made them count

    def try_reregister(self) -> Plan[Done | None]:
        """Write the changed topics of a master in one script; None when that cannot be done."""
        last = self._table.last()
        if last is None or not can_reregister(self.context, last):
            return None
        diff, same = NO_DIFF, last.signature.content == self.context.signature.content
        if not same:
            body = yield from self._body.read(self._blocks(last.decision))
            diff = yield from self._diff(last.decision, body)
            if len(diff.slices) > 1 or not diff.applied or not self._is_usual(body):
                return None
        again = Reregistration(self.context, self._table, last, diff, same)
        return again.written((yield again.item(self.context.origin)), self._body.blocks)

    def try_once(self) -> Plan[End]:
        """Decide, compare and write."""
        context = self.context
        decision = yield from self._decide()
        if not isinstance(decision, Decision):
            return decision
        if decision.same and not decision.first:
            end = yield from write(Write(self.context, self._version, decision, NO_DIFF))
            if isinstance(end, Done):
                self._table.restamp(self._table.current(decision))
            return end
        body = yield from self._body.read(self._blocks(decision))
        if decision.first and is_refused_alone(self.context, body):
            return SingleTopic()  # before a claim
        diff = yield from self._diff(decision, body)
        end = yield from write(Write(self.context, self._version, decision, diff, body))
        if isinstance(end, Done) and self._is_usual(body):
            self._table.update(decision, diff, self._body.blocks, end)
        elif isinstance(end, Done):
            self._table.drop()
        elif (
            isinstance(end, Full)
            and end.option in ("maxTopics", "maxPercentOfHost")
            and self._new_topics is None
        ):
            self._new_topics = yield from new_topics(context.keys, body.topics)
            return Again()
        return end

    def _is_usual(self, body: RegisterBrokerBody) -> bool:
        """Return whether registrations of the same identity have the same filter servers as this one."""
        split = split_signature(self.context.registration.body)
        return split is None or names_filter_servers_first(split[1], body)

    @property
    def _version(self) -> DataVersion:
        """The data version: of the signature, or of the body, which was read then."""
        if self.context.signature.version is not None:
            return self.context.signature.version
        assert self._body.body is not None
        return self._body.body.data_version

    def _decide(self) -> Plan[Decision | End]:
        """Ask for the decision; a refusal is asked for once more, to be written to the stream."""
        context = self.context
        if context.signature.version is None:
            yield from self._body.read()
        reply = register_reply((yield decide_call(context, self._version)))
        if not isinstance(reply, Refused):
            return reply
        body = yield from self._body.read()
        reply = register_reply((yield register_call(context, register_request(context, self._version, body))))
        return Again() if isinstance(reply, Decision) else reply

    def _blocks(self, decision: Decision) -> dict[bytes, Block] | None:
        """Return the blocks of the body that are stored unchanged."""
        table = self._table.current(decision)
        return None if table is None else table.slices

    def _diff(self, decision: Decision, body: RegisterBrokerBody) -> Plan[TableDiff]:
        """Compare the body with what is stored under the broker's epoch."""
        if not decision.writes:
            return NO_DIFF
        context, table = self.context, self._table.current(decision)
        if table is not None and table.texts is not None and table.texts.keys() >= body.topics.keys():
            if len(body.topics) <= TOPICS_A_STEP and not body.mapping_infos:
                return short_diff(context.registration.name, body.topics, table.texts, decision)
            stored = table.texts
        else:
            longest = max(body.topics, key=len, default="")
            context.limits.check_bytes("maxNameBytes", "a topic", longest)
            stored = yield from stored_topics(context, body, decision.epoch)
        mappings = (yield from changed_mappings(context, body, decision.epoch)) if decision.every else []
        diff = table_diff(
            context.registration.name,
            body,
            stored,
            mappings,
            decision,
            delete_missing=context.delete_missing,
            cause="register" if context.registration.mirrored is None else "mirror",
        )
        compared = yield from cooperatively(diff)
        if self._new_topics is None:
            return compared
        return replace(compared, growth=replace(compared.growth, namespace=self._new_topics))
