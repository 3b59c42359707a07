"""Comparisons of name servers, as a program that asks both reports them."""

import re
from typing import Annotated, Final

from apiflask import APIBlueprint
from pydantic import Field

from api.name_server import name_server, origin
from api.shapes import Address, Answer, Body, Line, Many, Written, items
from registry import drift
from registry.errors import InvalidField

bp = APIBlueprint("drift", __name__, url_prefix="/v1/drift")
NAME: Final = re.compile("[A-Za-z0-9._-]{1,64}")
"""The name of a comparison, which is a label of metrics."""
VALID_MOST_S: Final = drift.KEPT_MS // 1_000
Count = Annotated[int, Field(ge=1, le=10**9)]


class UnansweredBody(Body):
    """A name server that could not be compared, and why."""

    name_server: Address
    reason: Annotated[Line, Field(min_length=1, max_length=300)]


class DifferenceBody(Body):
    """One of the differences: its kind, what it is about, and what each name server says."""

    kind: drift.Kind
    subject: Annotated[Line, Field(min_length=1, max_length=300)]
    what: Annotated[Line, Field(min_length=1, max_length=300)]


class ComparisonBody(Body):
    """What a comparison of two name servers found. `counts` has those kinds of which there are differences, `examples`
    some of them; both are empty where one of the two is `unreachable`. After `validForSeconds` without another report
    the result is stale."""

    name_servers: Annotated[Many[Address], items(2, least=2)]
    valid_for_seconds: Annotated[int, Field(ge=1, le=VALID_MOST_S)]
    counts: Annotated[dict[drift.Kind, Count], Field(default_factory=dict)]
    unreachable: Annotated[Many[UnansweredBody], items(2)] = ()
    examples: Annotated[Many[DifferenceBody], items(20)] = ()

    def value(self) -> drift.DriftReport:
        """Return it as a value. Raises InvalidField for differences from a name server that did not answer."""
        for field, given in (("counts", self.counts), ("examples", self.examples)):
            if self.unreachable and given:
                raise InvalidField(field, "not empty, though a name server is unreachable")
        return drift.DriftReport(
            self.name_servers,
            self.valid_for_seconds,
            self.counts,
            tuple(drift.Unanswered(one.name_server, one.reason) for one in self.unreachable),
            tuple(drift.Difference(one.kind, one.subject, one.what) for one in self.examples),
        )


class UnansweredAnswer(Answer):
    """A name server that could not be compared, and why."""

    name_server: str
    reason: str


class DifferenceAnswer(Answer):
    """One of the differences: its kind, what it is about, and what each name server says."""

    kind: drift.Kind
    subject: str
    what: str


class ComparisonAnswer(Answer):
    """The last result of a comparison; times are Unix ms by the store's clock. `sinceMillis` is when it was first
    what it is, but for the examples. It is `stale` once it is older than `validForSeconds`."""

    name: str
    outcome: drift.Outcome
    stale: bool
    reported_millis: int
    since_millis: int
    valid_for_seconds: int
    name_servers: tuple[str, ...]
    counts: dict[drift.Kind, int]
    unreachable: tuple[UnansweredAnswer, ...]
    examples: tuple[DifferenceAnswer, ...]

    @classmethod
    def of(cls, name: str, found: drift.Comparison, now_ms: int) -> "ComparisonAnswer":
        report = found.report
        return cls(
            name=name,
            outcome=report.outcome,
            stale=found.is_stale(now_ms),
            reported_millis=found.at_ms,
            since_millis=found.since_ms,
            valid_for_seconds=report.valid_for_s,
            name_servers=report.name_servers,
            counts=dict(report.counts),
            unreachable=tuple(
                UnansweredAnswer(name_server=one.name_server, reason=one.reason) for one in report.unreachable
            ),
            examples=tuple(
                DifferenceAnswer(kind=one.kind, subject=one.subject, what=one.what) for one in report.examples
            ),
        )


class ComparisonsAnswer(Answer):
    """All comparisons by name, 20 at most; `nowMillis` is the time by the store's clock."""

    now_millis: int
    comparisons: tuple[ComparisonAnswer, ...]


@bp.get("")
@bp.output(ComparisonsAnswer)
@bp.doc(operation_id="listComparisons")
def comparisons() -> ComparisonsAnswer:
    """Comparisons of name servers

    Those that were reported within seven days."""
    server = name_server()
    found = server.run(drift.comparisons(server.keys))
    return ComparisonsAnswer(
        now_millis=found.now_ms,
        comparisons=tuple(
            ComparisonAnswer.of(name, one, found.now_ms) for name, one in found.by_name.items()
        ),
    )


@bp.get("/<name>")
@bp.output(ComparisonAnswer)
@bp.doc(operation_id="getComparison", responses=[404])
def comparison(name: str) -> ComparisonAnswer:
    """The last result of a comparison"""
    server = name_server()
    now_ms, found = server.run(drift.comparison(server.keys, name))
    return ComparisonAnswer.of(name, found, now_ms)


@bp.put("/<name>")
@bp.input(ComparisonBody)
@bp.output(Written)
@bp.doc(operation_id="putComparison", responses={409: "There are 20 comparisons"})
def put_comparison(name: str, json_data: ComparisonBody) -> Written:
    """Report the result of a comparison

    The event stream gets an entry where the result is another one than before. The name is of 1 to 64 letters, digits,
    dots, hyphens and underscores."""
    if not NAME.fullmatch(name):
        raise InvalidField("name", "not 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'")
    server = name_server()
    return Written.of(server.run(drift.report(server.keys, name, json_data.value(), origin())))


@bp.delete("/<name>")
@bp.output(Written)
@bp.doc(operation_id="deleteComparison")
def delete_comparison(name: str) -> Written:
    """Forget a comparison"""
    server = name_server()
    return Written.of(server.run(drift.delete(server.keys, name, origin())))
