"""An entry as a line: each kind in words, and what another program wrote as it is."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mqns.cli.event_lines import EntryDocument, line_of
from mqns.cli.moments import moment_text, parse_moment
from mqns.errors import ConfigError
from mqns.event_words import KINDS, Instant, Subject, words_of
from registry.events.entry import EventKind

AT_MS = 1795255839125
MEMBER = {"cluster": "c1", "broker": "b1", "id": 0, "addr": "h:1"}
WIPED = ["b1", "8,8,6,0", "8,8,4,0"]
UNTIL = moment_text(AT_MS, "seconds")
SAID: list[tuple[str, str, dict[str, Any], str]] = [
    ("stream_started", "empty_store", {}, "a new stream of events"),
    ("broker_registered", "first", MEMBER | {"addrs": {"0": "h:1"}}, "b1 0=h:1 of c1 entered"),
    (
        "broker_registered",
        "join",
        MEMBER | {"addrs": {"0": "h:1", "10": "h:3", "2": "h:2"}},
        "b1 0=h:1 of c1 entered; now 0=h:1 2=h:2 10=h:3",
    ),
    ("broker_removed", "lost", MEMBER | {"addrs": {}}, "b1 0=h:1 of c1 left; none is left"),
    (
        "broker_removed",
        "expired",
        MEMBER | {"addrs": {"1": "h:2"}, "last_seen_ms": AT_MS},
        f"b1 0=h:1 of c1 left; now 1=h:2; last heartbeat {moment_text(AT_MS)}",
    ),
    (
        "broker_updated",
        "register",
        MEMBER | {"epoch": 1, "zone": "z", "zone_before": "", "filters": ["f:1"], "filters_before": []},
        'b1 0=h:1 of c1: zone "" -> "z", filters [] -> ["f:1"]',
    ),
    (
        "topics_changed",
        "wipe",
        {"rows": [[*WIPED, ["A", "B"]], ["b2", "", "4,2,6,1", ["A"]], ["b3", "1,1,6,0", "", ["A"]]]},
        "A, B on b1: 8/8 RW- -> 8/8 R--; A on b2: added 4/2 RW- flag 1; A on b3: deleted, was 1/1 RW-",
    ),
    (
        "topics_changed",
        "register",
        {"rows": [["b1", "", "8,8,6,0", ["A", "B", "C", "D", "E"]]]},
        "A, B, C, 2 more on b1: added 8/8 RW-",
    ),
    (
        "mappings_changed",
        "register",
        {
            "rows": [
                ["b1", "S", None, {}],
                ["b1", "T", {}, None],
                ["b1", "U", {"a": 1}, {}],
                ["b1", "V", {}, {}],
            ]
        },
        "static topics: S on b1 added, T on b1 deleted, U on b1 changed, 1 more",
    ),
    ("kv_changed", "put", {"kv_ns": "n", "key": "k", "after": "v"}, 'n k: none -> "v"'),
    (
        "kv_changed",
        "put",
        {"kv_ns": "n", "key": "k", "before_bytes": 70000, "after": "x" * 99},
        f'n k: "70000 bytes" -> "{"x" * 59}…',
    ),
    (
        "settings_changed",
        "update",
        {"changes": {"a": [None, "1"], "b": ["2", "3"]}},
        'a none -> "1", b "2" -> "3"',
    ),
    (
        "hold_changed",
        "outage",
        {"after": {"from_ms": AT_MS, "until_ms": AT_MS}},
        f"leases held: none -> those that end from {moment_text(AT_MS)}, until {moment_text(AT_MS)}",
    ),
    (
        "drain_changed",
        "drain",
        {
            "broker": "b1",
            "before": {"owner": "a", "reason": "r"},
            "after": {"owner": "b", "reason": "s", "until_ms": AT_MS},
        },
        f'b1: drained for a, "r" -> drained for b, "s" until {UNTIL}',
    ),
    (
        "drain_changed",
        "undrain",
        {"broker": "b1", "before": {"owner": "a", "reason": "r"}},
        'b1: drained for a, "r" -> not drained',
    ),
    (
        "access_changed",
        "rotated",
        {
            "principal": "ci",
            "credential": "token:b",
            "roles": ["reader"],
            "expires_ms": AT_MS,
            "replaces": "token:a",
        },
        f"token:b of ci as reader until {moment_text(AT_MS)}, in place of token:a",
    ),
    (
        "access_changed",
        "revoked",
        {"principal": "ci", "credential": "principal:ci"},
        "principal:ci of ci",
    ),
    (
        "access_changed",
        "rules",
        {
            "changes": {"accessRead": ["open", "signed"], "principals": ["one", "two"]},
            "added": ["a", "b c"],
            "removed": ["d"],
            "count": 3,
        },
        'accessRead "open" -> "signed"; added a, "b c"; removed d',
    ),
    ("access_changed", "rules", {"changes": {"principals": ["1", "2"]}}, "principals of the access file"),
    (
        "access_denied",
        "denied",
        {"operation": "PUT /v1/kv/<namespace>/<key>", "class": "admin", "count": 3},
        '"PUT /v1/kv/<namespace>/<key>", of class admin, 3 times',
    ),
    ("access_denied", "denied", {"operation": "100", "class": "admin", "count": 1}, "100, of class admin"),
    (
        "drift_changed",
        "compared",
        {"comparison": "d", "after": {"outcome": "same", "counts": {}, "unreachable": []}},
        "d: not compared -> same",
    ),
    (
        "drift_changed",
        "compared",
        {
            "comparison": "d",
            "before": {
                "outcome": "drift",
                "counts": {"topic-missing": 2, "kv-differs": 1},
                "unreachable": [],
            },
            "after": {"outcome": "unreachable", "counts": {}, "unreachable": ["h:9876"]},
        },
        "d: 2 topic-missing, 1 kv-differs -> no answer of h:9876",
    ),
    (
        "conflict_seen",
        "two_names",
        MEMBER | {"action": "accepted", "holder": {"broker": "b2"}},
        'b1 0=h:1 of c1 accepted; there was broker "b2"',
    ),
    (
        "conflict_seen",
        "ownership",
        MEMBER | {"action": "refused", "holder": {"addr": "h:2", "cluster": "c1"}},
        'b1 0=h:1 of c1 refused; there was addr "h:2" cluster "c1"',
    ),
    (
        "tables_repaired",
        "topics",
        {"brokers": ["b1"], "topics": ["A", "B"], "count": 2},
        "2 rows; brokers b1; topics A, B",
    ),
    ("checkpoint", "request", {"round": 7, "scope": "topics", "broker": "b1"}, "round 7: topics of b1"),
    ("news", "", {"a": 1, "b": ["x"], "c": "t\x1b"}, 'a=1 b=["x"] c="t\\u001b"'),
]


def entry(kind: str | None, cause: str | None, data: dict[str, Any], **members: Any) -> EntryDocument:
    common = {"inc": 1, "seq": 1, "part": None, "op": "op", "actor": "http:h:1", "peer": None}
    return EntryDocument(f"{AT_MS}-0", AT_MS, kind, cause, data=data, **(common | members))


@pytest.mark.parametrize(("kind", "cause", "data", "words"), SAID)
def test_words(kind: str, cause: str, data: dict[str, Any], words: str) -> None:
    what = f"{kind}/{cause}" if cause else kind
    assert line_of(entry(kind, cause, data)) == f"{moment_text(AT_MS)} {what} {words} by http:h:1"


def test_each_kind_has_words() -> None:
    assert set(KINDS) == set(EventKind)
    assert {kind for kind, *_ in SAID} - {"news"} == set(EventKind)


def test_the_topic_that_was_asked_for_comes_first() -> None:
    rows = [["b1", "", "8,8,6,0", ["A", "B", "C", "D"]], ["b2", "", "8,8,6,0", ["E", "F", "G", "H"]]]
    line = line_of(entry("topics_changed", "register", {"rows": rows}), "H")
    assert "H, E, F, 1 more on b2: added 8/8 RW-; A, B, C, 1 more on b1" in line


def test_who_did_it() -> None:
    assert line_of(entry("news", None, {}, actor="token:alice", peer="h:2")).endswith(
        "no fields by token:alice (h:2)"
    )
    assert line_of(entry(None, None, {}, actor=None)) == f"{moment_text(AT_MS)} no kind no fields by no actor"


def test_names_and_times_are_parts_of_their_own() -> None:
    """For readers that link the one and write the other in their own way."""
    name = "T" * 100
    rows = [["b 1", "", "8,8,6,0", [name, "U"]]]
    parts = [
        Subject("topic", name),
        ", ",
        Subject("topic", "U"),
        " on ",
        Subject("broker", "b 1"),
        ": added 8/8 RW-",
    ]
    assert words_of("topics_changed", {"rows": rows}) == parts
    assert [str(parts[0]), str(parts[4])] == ["T" * 60 + "…", '"b 1"']
    removed = words_of("broker_removed", MEMBER | {"addrs": {}, "last_seen_ms": AT_MS})
    assert (removed[-1], Subject("cluster", "c1") in removed) == (Instant(AT_MS), True)


def test_words_are_cut_where_they_are_too_many() -> None:
    addrs = {str(number): "h:1" for number in range(9)}
    zones = {f"zone{number}": "z" * 60 for number in range(40)}
    said = "".join(map(str, words_of("broker_updated", MEMBER | zones | {"addrs": addrs})))
    assert (len(said), said[-1]) == (1001, "…")


FORGED = 'X: "a" -> none by http:10.0.0.5'


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("X", "X"),
        ("%RETRY%g:1", "%RETRY%g:1"),
        ("", '""'),
        (FORGED, '"X: \\"a\\" -> none by http:10.0.0.5"'),
        ("a b", '"a b"'),
        ("it's", '"it\'s"'),
        ("a\nb\x1b", '"a\\nb\\u001b"'),
        ("a\u2028b", '"a\u2028b"'),
        (f"{'a ' * 40}", f'"{"a " * 30}…"'),
    ],
)
def test_a_name_is_no_other_words_of_the_line(name: str, shown: str) -> None:
    """One that could be taken for some is quoted, wherever it stands."""
    written = {"kv_ns": name, "key": name, "before": None, "after": "v"}
    whole = replace(entry("kv_changed", "request", written), actor=name or "a", peer=name or None)
    actor = shown if name else "a"
    peer = f" ({shown})" if name else ""
    assert line_of(whole) == (
        f'{moment_text(AT_MS)} kv_changed/request {shown} {shown}: none -> "v" by {actor}{peer}'
    )
    rows = [[name or "b", "", "8,8,6,0", [name or "T"]]]
    if name:
        assert f" {shown} on {shown}: added" in line_of(entry("topics_changed", "register", {"rows": rows}))
    member = MEMBER | {"broker": name, "addr": name, "cluster": name, "addrs": {"1": name}}
    said = line_of(entry("broker_removed", "lost", member))
    assert f" {shown} 0={shown} of {shown} left; now 1={shown}"[:60] in said


@pytest.mark.parametrize("kind", [*EventKind, "news", None])
@pytest.mark.parametrize(
    "value", [None, 0, -1, 10**18, "", "x", [], [[]], [["b"]], {}, {"x": []}, "x" * 9999]
)
def test_no_entry_ends_the_command(kind: str | None, value: Any) -> None:
    """Each field of each kind, one after the other, has another value than a name server writes."""
    whole = {name: member for row in SAID if row[0] == kind for name, member in row[2].items()}
    for name in [*whole, "other"]:
        line = line_of(entry(kind, "c", whole | {name: value}), "A")
        assert line.endswith(" by http:h:1")
        assert len(line) < 2000
        line_of(entry(kind, "c", {key: member for key, member in whole.items() if key != name}))


def test_a_time_that_no_calendar_has() -> None:
    far = replace(entry("news", None, {}), at_millis=10**18)
    assert line_of(far).startswith(f"{10**18} news")


def test_times_as_they_are_typed() -> None:
    def now_ms() -> int:
        return AT_MS

    assert [parse_moment("--since", text, now_ms) for text in ("90s", "30m", "1h", "2d")] == [
        AT_MS - 1000 * seconds for seconds in (90, 1800, 3600, 172_800)
    ]
    assert parse_moment("--since", str(AT_MS), now_ms) == AT_MS
    assert parse_moment("--since", "2026-11-21T10:10:39.125Z", now_ms) == AT_MS
    assert parse_moment("--since", "2026-11-21T12:10:39.125+02:00", now_ms) == AT_MS
    local = datetime.fromtimestamp(AT_MS / 1000).isoformat()
    assert parse_moment("--since", local, now_ms) == AT_MS
    assert parse_moment("--since", "999999999d", now_ms) == 0


@pytest.mark.parametrize(
    "text", ["", "h", "1w", "1 h", "-1h", "yesterday", "9" * 16, "2026-13-01", "\u0661h"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--until: "):
        parse_moment("--until", text, int)
