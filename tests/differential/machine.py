"""The state machine: random requests to all servers; the replies and all tables are compared after each."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec import Struct
from msgspec.structs import replace

from rocketmq_remoting.codes import RequestCode
from testbed.eventually import eventually
from tests.differential import requests
from tests.differential.answers import Seen
from tests.differential.deviations import RULES
from tests.differential.exchange import BROKEN, CUT, Exchange
from tests.differential.frames import FRAMES
from tests.differential.sides import JAVA_4, JAVA_5, OURS, Side, Sides
from tests.differential.tables import alone, remembered, shown_by
from tests.differential.world import Ask, Member, State, World

SETTLED_S = 5.0
EXPIRED_S = 15.0
"""Java looks for expired brokers 5 s after its start for the first time."""
_worlds = count(1)
TABLES = (Ask(106), Ask(206), *(Ask(105, {"topic": topic}) for topic in (*requests.TOPICS, "@new")))
"""Requests that show all tables."""
NOTHING = Seen(None)
REQUESTS: dict[str, Callable[[bool], st.SearchStrategy[Ask]]] = {
    "register": requests.registrations,
    "unregister": requests.unregistrations,
    "route": requests.route_queries,
    "heartbeat": requests.heartbeats,
    "list": requests.listings,
    "permission": requests.permission_changes,
    "topic": requests.topic_changes,
    "kv": requests.kv_requests,
    "configure": requests.configurations,
    "unknown": requests.unknown_requests,
}
KINDS = (
    *("register",) * 10,
    *("again", "unregister", "route", "heartbeat", "topic") * 2,
    *("list", "permission", "kv", "configure", "unknown", "cut", "expire", "broken"),
)
"""The kinds of steps, each as often as its weight."""
OF_5X = ("unknown",)
"""Those to which 4.x sends no reply."""


class Different(AssertionError):
    """Two servers differ where no rule allows it."""

    def __repr__(self) -> str:
        return str(self)  # `eventually` shows it, and it has lines


class Session(Struct, frozen=True):
    """The state of all examples. `steps` counts the requests by code, `allowed` the uses of each rule."""

    sides: Sides
    steps: Counter[str] = msgspec.field(default_factory=Counter)
    allowed: Counter[str] = msgspec.field(default_factory=Counter)


class Machine(RuleBasedStateMachine):
    """One example."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._sides = session.sides
        self._begin(four=False)

    @initialize(four=st.booleans())
    def choose_peers(self, four: bool) -> None:
        """Return whether the brokers of this example are 4.x, so that 4.9.7 is compared, too."""
        self._begin(four)

    def teardown(self) -> None:
        self._forget()

    def _begin(self, four: bool) -> None:
        self._four = four
        self._world = World(next(_worlds), four)
        self._compared = {JAVA_4, JAVA_5} if four else {JAVA_5}
        self._state = State()
        self._registered: dict[Member, Ask] = {}

    def _forget(self) -> None:
        for side in self._sides.all:
            side.forget(self._world)

    # -- the rules

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """One step; a single rule, so that the weights of KINDS hold."""
        kind = data.draw(st.sampled_from([kind for kind in KINDS if not (self._four and kind in OF_5X)]))
        if kind == "cut":
            self._cut(data.draw(st.integers(1, len(requests.ADDRESSES))))
        elif kind == "expire":
            self._expire(data.draw(st.integers(1, len(requests.ADDRESSES))))
        elif kind == "again":
            if self._registered:
                self._do(data.draw(st.sampled_from(list(self._registered.values()))))
        elif kind == "broken":
            self._send_broken(data.draw(st.sampled_from(sorted(FRAMES))))
        else:
            self._do(data.draw(REQUESTS[kind](self._four)))

    def _cut(self, number: int) -> None:
        """Close a broker's connection."""
        self._session.steps["cut"] += 1
        for side in self._asked():
            side.cut(number)
        self._settle(Ask(CUT, over=number), {})

    def _expire(self, number: int) -> None:
        """End the lease of a broker with its own connection; one of 4.x, whose lease is 120 s, is disconnected.

        Nothing else is asked meanwhile: what the servers judge by their own clocks is alike again when all have."""
        addr = requests.ADDRESSES[number - 1]
        members = [member for member in self._state.live if member[1] == addr]
        if len(members) != 1 or not alone(self._state, members[0], number):
            return
        self._session.steps["expire"] += 1
        last = self._registered[members[0]]
        ask = replace(last, ext=(last.ext or {}) | {"heartbeatTimeoutMillis": "1"}, oneway=False, over=number)
        answers = self._answers(ask)
        if answers[OURS].code != 0:  # as what registered last was: the lease goes on
            self._settle(ask, answers)
            return
        for release in sorted(self._compared):
            self._compare(Exchange(release, ask, answers[release], answers[OURS], self._state))
        if JAVA_4 in self._compared:
            self._sides.java[JAVA_4].cut(number)
        gone = Ask(CUT, over=number)
        state = eventually(lambda: self._tables(gone, without=addr), EXPIRED_S)
        self._state = remembered(state, gone, NOTHING)
        for side in (self._sides.java[JAVA_5], self._sides.ours):
            assert side.closed_by_peer(number), (
                f"{side.label} leaves the connection of an expired broker open"
            )

    def _send_broken(self, frame: str) -> None:
        """Send bytes that are no request, on a new connection."""
        self._session.steps["broken"] += 1
        ask = Ask(BROKEN, {"frame": frame})
        replies = {side.label: side.broken(FRAMES[frame], self._world) for side in self._asked()}
        for release in sorted(self._compared):
            self._compare(Exchange(release, ask, replies[release], replies[OURS], self._state))

    # -- one request

    def _asked(self) -> list[Side]:
        return [side for side in self._sides.all if side.label in self._compared or side is self._sides.ours]

    def _do(self, ask: Ask) -> None:
        self._session.steps[str(int(ask.code))] += 1
        self._settle(ask, self._answers(ask))

    def _answers(self, ask: Ask) -> dict[str, Seen]:
        """Send a request to all servers; return their replies by label, none of a oneway request."""
        opaques = [(side, side.send(ask, self._world)) for side in self._asked()]
        answers = {}
        for side, opaque in opaques:
            if ask.oneway:
                self._let_pass(side, ask.over)
            else:
                answers[side.label] = side.receive(ask, opaque, self._world)
        return answers

    def _let_pass(self, side: Side, over: int) -> None:
        """A oneway request has no answer: one behind it on the same connection has."""
        behind = Ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, over=over)
        side.receive(behind, side.send(behind, self._world), self._world)

    def _settle(self, ask: Ask, answers: dict[str, Seen]) -> None:
        """Compare the answers, then the tables of all servers that should be alike still."""
        ours = answers.get(OURS, NOTHING)
        for release in sorted(self._compared):
            e = Exchange(release, ask, answers.get(release, NOTHING), ours, self._state)
            if answers:
                self._compare(e)
            parting = [one.name for one in RULES if one.parts and one.allows(e)]
            self._session.allowed.update(parting)
            if parting:
                self._compared.remove(release)
        if JAVA_5 not in self._compared:
            self._forget()
            self._begin(self._four)
            return
        state = eventually(lambda: self._tables(ask), SETTLED_S)
        self._state = remembered(state, ask, ours)
        if ask.says is not None and not ours.code:
            self._registered[ask.says.cluster, ask.says.addr] = ask

    def _tables(self, ask: Ask, *, without: str = "") -> State:
        """Return this server's replies of all tables if the others' are equal and none lists the address `without`."""
        looks = self._sides.ours.look(TABLES, self._world)
        shown = shown_by(TABLES, looks[0], self._state)
        for release in sorted(self._compared):
            (java,) = self._sides.java[release].look(TABLES, self._world)
            for look in looks:
                for one, theirs, own in zip(TABLES, java, look, strict=True):
                    self._compare(Exchange(release, one, theirs, own, shown, ask))
        assert not shown.names_of(without), f"{without} is still there"
        return shown

    def _compare(self, e: Exchange) -> None:
        java, ours = e.java, e.ours
        for deviation in RULES:
            if deviation.allows(e):
                adjusted = deviation.adjust(replace(e, java=java, ours=ours))
                if adjusted != (java, ours):
                    self._session.allowed[deviation.name] += 1
                java, ours = adjusted
        if java != ours:
            behind = f" after {shown(e.behind)}" if e.behind else ""
            raise Different(f"{shown(e.ask)}{behind}\n" + "\n".join(_apart(e.release, java, ours)))


def shown(value: Struct) -> str:
    """Return a struct's members that differ from their defaults."""
    members = {f.name: getattr(value, f.name) for f in msgspec.structs.fields(value)}
    said = {f.name: members[f.name] for f in msgspec.structs.fields(value) if members[f.name] != f.default}
    return " ".join(f"{name}={one!r}" for name, one in said.items() if name != "says")


def _apart(release: str, java: Seen, ours: Seen) -> Iterator[str]:
    for field in msgspec.structs.fields(java):
        one, other = getattr(java, field.name), getattr(ours, field.name)
        if one != other:
            yield f"  {field.name}: {release} {one!r}\n  {' ' * len(field.name)}   ours {other!r}"
