"""What answers a backup or a restore in the place of a redis-namesrv, and lists or tags what none does."""

from collections.abc import Iterator

import msgspec
import pytest

from mqns.cli.backup import state
from mqns.cli.backup.differences import Differences, KVChange
from mqns.cli.backup.restoring import Restoring
from mqns.cli.backup.state import Part, State, is_shared, read_state
from mqns.cli.http_api import HttpApi, HttpError
from registry.options.fields import Options
from tests.mqns.cli.test_http_api import HEAD, LIMIT_S, answering, whole

TAGLESS = {
    "none": b"",
    "empty": b"ETag:\r\n",
    "beyond ASCII": b'ETag: "\xe9\xff"\r\n',
    "tab": b'ETag: "\t"\r\n',
}


@pytest.mark.parametrize("tag", TAGLESS.values(), ids=TAGLESS)
def test_a_value_is_not_overwritten_without_a_tag_that_can_be_sent(tag: bytes) -> None:
    body = b'{"value":"before"}'
    asked: list[bytes] = []

    def answer() -> Iterator[bytes]:
        asked.append(body)
        yield HEAD + tag + b"Content-Length: %d\r\n\r\n" % len(body) + body

    change = KVChange("n", "k", "before", "after")
    with answering(answer, 0) as url:
        restoring = Restoring(
            HttpApi(url, LIMIT_S), State({}, {}, {}), Differences((change,), {}, {}, (), ())
        )
        with pytest.raises(HttpError, match=f"^{url}: KV value n/k has no ETag of a redis-namesrv$"):
            restoring.run(lambda: None)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("namespaces", {"namespaces": ["a", "b", "c", "d"], "table": {}, "next": None}),
        ("pages", {"namespaces": ["a"], "table": {}, "next": "x"}),
        ("values", {"namespaces": ["a"], "table": dict.fromkeys("abcd", ""), "next": None}),
        ("characters", {"namespaces": ["a"], "table": {"k": "vvv"}, "next": None}),
    ],
)
def test_a_server_that_lists_too_much_is_refused(
    what: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(state.KV_MOST, what, 3)
    with answering(lambda: whole(msgspec.json.encode(answer)), 0) as url:
        with pytest.raises(HttpError, match=f"^{url}: over 3 {what} of KV$"):
            read_state(HttpApi(url, LIMIT_S), (Part.KV,), is_shared)
        monkeypatch.setitem(state.KV_MOST, what, 1000)
        if what != "pages":
            assert read_state(HttpApi(url, LIMIT_S), (Part.KV,), is_shared)


def test_what_a_server_has_by_its_own_limits_is_not_too_much() -> None:
    limits = Options()
    namespaces = limits.max_kv_namespaces + 1  # that of order topics has a place besides
    values = namespaces * limits.max_kv_keys
    assert state.KV_MOST["namespaces"] >= namespaces
    assert state.KV_MOST["values"] >= values
    assert state.KV_MOST["characters"] >= namespaces * limits.max_kv_namespace_bytes
    assert state.KV_MOST["pages"] >= state.KV_MOST["namespaces"] + state.KV_MOST["values"] / state.PAGE
