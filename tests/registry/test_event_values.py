"""Fields of entries as values; what cannot be read stays text, and all of it can be written as JSON."""

from typing import Any

import msgspec
import pytest

from registry.events.entry import Event, EventId
from registry.events.values import values_of


def values(kind: str, **fields: str) -> dict[str, Any]:
    return values_of(Event(EventId(1), {"v": "1", "kind": kind, "seq": "1", **fields}))


def test_structures_and_numbers() -> None:
    assert values(
        "broker_updated", id="0", filters='["f:1"]', filters_before="[]", dv="0:1:2", acting="1"
    ) == {
        "id": 0,
        "filters": ["f:1"],
        "filters_before": [],
        "dv": "0:1:2",
        "acting": 1,
    }
    assert values("broker_updated", timeout_ms="2", timeout_ms_before="1") == {
        "timeout_ms": 2,
        "timeout_ms_before": 1,
    }


def test_what_a_field_is_depends_on_the_kind() -> None:
    assert values("kv_changed", before='{"a":1}', after="7", key="1") == {
        "before": '{"a":1}',
        "after": "7",
        "key": "1",
    }
    assert values("drain_changed", before='{"a":1}') == {"before": {"a": 1}}
    assert values("access_changed", roles='["reader"]', expires_ms="7") == {
        "roles": ["reader"],
        "expires_ms": 7,
    }
    assert values("access_changed", added='["a"]', count="1") == {"added": ["a"], "count": 1}
    assert values("tables_repaired", topics='["T"]') == {"topics": ["T"]}
    assert values("broker_removed", topics="7") == {"topics": 7}
    assert values("checkpoint", scope="end", members="3", kv="1") == {"scope": "end", "members": 3, "kv": 1}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "NaN",
            '{"a":}',
            "[" * 5000,
            "[" * 17 + "]" * 17,
            '["\udcff"]',
            '"\\ud800"',
            "9" * 30,
            "9" * 5000,
        ),
        f"[{'9' * 25}]",
        '{"a":' * 20 + "1" + "}" * 20,
    ],
)
def test_what_cannot_be_read_is_text(text: str) -> None:
    shown = values("topics_changed", rows=text, count=text)
    assert shown == {"rows": text, "count": text}


def test_what_can_be_read_can_be_written() -> None:
    deepest = "[" * 16 + "]" * 16
    for text in (deepest, f"[{2**63 - 1}]", "1e300", "true"):
        assert msgspec.json.encode(values("topics_changed", rows=text)) == b'{"rows":%s}' % text.encode()
