"""The search against trying every order, and against histories of a simulated service that keeps its promises."""

import random
import time
from bisect import bisect_right
from collections import Counter

import msgspec
import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from faults.history import History, Model, Operation, Register, Value, judge
from faults.history.search import ABSENT, NO_WRITE, Read, TooWide, Write, impossible
from tests.history.by_force import explained
from tests.history.by_hand import HERE, A, B

VALUES = (0, 1)
MOMENTS = st.integers(0, 6)
SPANS = st.integers(0, 4)
BEHIND_S, LEASE_S = 1.0, 0.8


@st.composite
def writes(draw: st.DrawFn) -> Write:
    opens = draw(MOMENTS)
    closes = opens + draw(SPANS)
    required = draw(st.booleans())
    if draw(st.integers(0, 2)) == 0:
        return Write(opens, closes, required, removes=draw(st.sets(st.sampled_from(VALUES))))
    if draw(st.booleans()):
        return Write(opens, closes, required, sets=draw(st.sampled_from(VALUES)))
    lapses_from = opens + draw(SPANS)
    lapses_until = max(closes, lapses_from) + draw(SPANS)
    return Write(
        opens,
        closes,
        required,
        sets=draw(st.sampled_from(VALUES)),
        lapses_from=lapses_from,
        lapses_until=lapses_until,
    )


@st.composite
def places(draw: st.DrawFn) -> tuple[list[Write], list[Read]]:
    """A few writes and reads that overlap a lot; a session's reads in the order of their times."""
    written = draw(st.lists(writes(), min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 0:
        opens = draw(MOMENTS)
        closes = opens + draw(SPANS)
        lasting = [
            index for index, one in enumerate(written) if one.sets is not None and one.lapses_until >= closes
        ]
        restores = draw(st.sets(st.sampled_from([NO_WRITE, *lasting]), min_size=1))
        written.append(Write(opens, closes, draw(st.booleans()), restores=restores))
    accepts = st.sampled_from([frozenset({0}), frozenset({1}), frozenset({0, 1}), frozenset({ABSENT})])
    reads: list[Read] = []
    last: dict[int, tuple[int, int]] = {}
    for _ in range(draw(st.integers(1, 4))):
        session = draw(st.integers(0, 1))
        opens, closes = draw(MOMENTS), draw(SPANS)
        opens = max(opens, last.get(session, (0, 0))[0])
        closes = max(opens + closes, last.get(session, (0, 0))[1])
        last[session] = opens, closes
        after = draw(st.sampled_from([NO_WRITE, NO_WRITE, *range(len(written))]))
        if after != NO_WRITE and not (written[after].required and written[after].closes <= closes):
            after = NO_WRITE  # what a connection had acknowledged before it asked
        reads.append(Read(opens, closes, draw(accepts), session, after))
    return written, reads


@settings(max_examples=400, deadline=None)
@given(places())
@example(
    (
        [Write(1, 1, False, sets=0), Write(0, 0, False, removes={0}), Write(0, 0, False, restores={0})],
        [Read(0, 1, {0}, 0), Read(0, 1, {ABSENT}, 0)],
    )
)  # what is brought back first
def test_finds_an_order_exactly_when_there_is_one(place: tuple[list[Write], list[Read]]) -> None:
    violation = impossible(*place)
    event("impossible" if violation else "explained")
    assert (violation is None) == explained(*place)


class Simulated:
    """One place that keeps the model's promises, served by two workers that follow it up to BEHIND_S later."""

    def __init__(
        self, seed: int, *, behind_s: float = BEHIND_S * 0.95, looks: int = 8, lazy: int = 3
    ) -> None:
        """`looks` to four writes; the more `lazy`, the less a worker catches up at each."""
        self._chance = random.Random(seed)
        self._looks = looks
        self._lazy = lazy
        self._behind_s = behind_s
        self._changes: list[tuple[float, Value | None, float]] = [
            (0.0, None, 0.0)
        ]  # with the end of the lease
        self._views = [0.0, 0.0]  # up to when each worker knows the changes
        self.operations: list[Operation] = []

    def run(self, count: int) -> History:
        now_s, versions = 1.0, 0
        for _ in range(count):
            now_s += self._chance.expovariate(20)
            client = self._chance.randrange(4)  # one connection each; of the workers in turn
            began_s = now_s
            now_s += self._chance.random() * 0.01
            kind = self._chance.choices(
                ("register", "renew", "unregister", "lookup"), (2, 1, 1, self._looks)
            )[0]
            value: Value | None = None
            if kind == "lookup":
                value = self._look(client, now_s)
            else:
                address = (A, B)[client % 2]
                own = [change[1] for change in self._changes if change[1] and change[1].address == address]
                if kind == "renew" and own:
                    value = own[-1]
                else:
                    versions += 1
                    value = Value(address, versions)
                if kind == "unregister":
                    current = self._at(now_s)
                    value = Value(address)
                    if current is not None and current.address == address:
                        self._changes.append((now_s, None, 0.0))
                else:
                    self._set(now_s, value)
                self._views[client // 2] = now_s
            now_s += self._chance.random() * 0.01
            self.operations.append(
                Operation(
                    "register" if kind == "renew" else kind,  # type: ignore[arg-type]
                    HERE,
                    value,
                    f"c{client}",
                    client,
                    began_s,
                    now_s,
                    acknowledged=kind == "lookup" or self._chance.random() < 0.9,
                    question="T0" if kind == "lookup" else "",
                    lease_s=LEASE_S if kind in ("register", "renew") else 0.0,
                )
            )
        return History(tuple(self.operations))

    def _set(self, now_s: float, value: Value) -> None:
        self._changes.append((now_s, value, now_s + LEASE_S))

    def _look(self, client: int, now_s: float) -> Value | None:
        worker = client // 2
        oldest = max(self._views[worker], now_s - self._behind_s)
        self._views[worker] = oldest + self._chance.random() ** self._lazy * (now_s - oldest)
        return self._at(self._views[worker])

    def _at(self, at_s: float) -> Value | None:
        last = bisect_right(self._changes, at_s, key=lambda change: change[0]) - 1
        _, value, lease_end_s = self._changes[last]
        return value if at_s < lease_end_s else None

    def anything_else(self, at_s: float) -> set[Value | None]:
        """Return the values that were never there from BEHIND_S before that moment until a little after."""
        values = {change[1] for change in self._changes}
        steps = 400
        seen = {self._at(at_s - 0.1 - BEHIND_S + (BEHIND_S + 0.2) * step / steps) for step in range(steps)}
        ends = {change[0] for change in self._changes if at_s - BEHIND_S - 0.1 <= change[0] <= at_s + 0.1}
        return values - seen - {self._at(end) for end in ends}


MODEL = Model(behind_s=BEHIND_S, late_s=0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_service_that_keeps_its_promises_is_never_complained_of(seed: int) -> None:
    report = judge(Simulated(seed).run(300), MODEL)
    assert report.ok, report


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30), st.randoms(use_true_random=False))
def test_an_answer_that_was_true_at_no_time_is_complained_of(seed: int, chance: random.Random) -> None:
    """The operations are all acknowledged, so that what was true when is known but for milliseconds."""
    simulated = Simulated(seed)
    operations = [msgspec.structs.replace(one, acknowledged=True) for one in simulated.run(120).operations]
    looks = [at for at, one in enumerate(operations) if one.kind == "lookup"]
    at = chance.choice(looks)
    others = sorted(simulated.anything_else(operations[at].ended_s), key=str)
    assume(others)
    operations[at] = msgspec.structs.replace(operations[at], value=chance.choice(others))
    assert not judge(History(tuple(operations)), MODEL).ok


def test_a_service_that_is_too_far_behind_is_complained_of() -> None:
    rules = Counter(
        rule
        for seed in range(20)
        for complaint in judge(
            Simulated(seed, behind_s=4 * BEHIND_S, looks=80, lazy=30).run(600), MODEL
        ).complaints
        for rule in complaint.rules
    )
    assert rules.total() >= 20
    assert rules["not long behind"] + rules["leases end"] + rules["leases last"] > 15, rules


def test_a_hundred_thousand_operations_take_seconds() -> None:
    operations = Simulated(1).run(20_000).operations
    history = History(
        tuple(
            msgspec.structs.replace(one, place=Register("b", number))
            for number in range(5)
            for one in operations
        )
    )
    began = time.process_time()
    assert judge(history, MODEL).ok
    assert time.process_time() - began < 10.0
    assert len(history.operations) == 100_000


def test_unanswered_writes_do_not_multiply() -> None:
    """Forty that may take effect at any time: readers see each of them, and the order is found."""
    pending = [Write(0.0, 1000.0, False, sets=number) for number in range(40)]
    seen = [Read(number + 1.0, number + 1.5, frozenset({number}), number % 3) for number in range(40)]
    assert impossible(pending, seen) is None
    again = [*seen, Read(50.0, 50.5, frozenset({7}), 4)]
    violation = impossible(pending, again)
    assert violation is not None
    assert violation.read == 40


def test_a_search_that_gets_too_wide_says_so() -> None:
    apart = [Write(0.0, 100.0, True, sets=number) for number in range(16)]
    with pytest.raises(TooWide):
        impossible(apart, [Read(200.0, 201.0, frozenset({99}), 0)])
