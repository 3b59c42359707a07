"""KV configuration (docs/conformance.md, KV). Every test has KV namespaces of its own."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.kv_table import decode_kv_table
from testbed.connection import Connection
from testbed.nameserver import NameServer
from testbed.scene import Scene

NUMBERS = itertools.count(1)


@pytest.fixture
def n() -> str:
    """A KV namespace that was never used."""
    return f"n{next(NUMBERS)}"


def not_found(namespace: str, key: str) -> tuple[int, str]:
    return 22, f"No config item, Namespace: {namespace} Key: {key}"


def get(ns: Scene, namespace: str, key: str) -> str | tuple[int, str | None]:
    """The value, or code and remark."""
    answer = ns.ask(RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key})
    return (answer.ext or {})["value"] if answer.code == 0 else (answer.code, answer.remark)


def delete(ns: Scene, namespace: str, key: str) -> None:
    assert ns.k2.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": namespace, "key": key}).code == 0


@pytest.mark.conformance("KV-01", "KV-10")
def test_what_was_put_is_got(ns: Scene, n: str) -> None:
    for value in ("v", "another"):
        ns.put_kv(n, "k", value)
        assert get(ns, n, "k") == value


@pytest.mark.conformance("KV-02")
def test_an_unknown_key(ns: Scene, n: str) -> None:
    assert get(ns, n, "k") == not_found(n, "k")


@pytest.mark.conformance("KV-03", "KV-04")
def test_a_key_is_deleted(ns: Scene, n: str) -> None:
    delete(ns, n, "k")
    ns.put_kv(n, "k", "v")
    delete(ns, n, "k")
    assert get(ns, n, "k") == not_found(n, "k")


@pytest.mark.conformance("KV-05", "KV-07")
def test_a_namespace_is_listed(ns: Scene, n: str) -> None:
    ns.put_kv(n, "a", "1")
    ns.put_kv(n, "b", "2")
    answer = ns.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": n})
    assert (answer.code, decode_kv_table(answer.body).table) == (0, {"a": "1", "b": "2"})
    delete(ns, n, "a")
    delete(ns, n, "b")
    answer = ns.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": n})
    assert (answer.code, answer.body) == (0, b'{"table":{}}')


@pytest.mark.conformance("KV-06")
def test_an_unknown_namespace(ns: Scene, n: str) -> None:
    answer = ns.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": n})
    assert (answer.code, answer.remark) == (22, f"No config item, Namespace: {n}")


@pytest.mark.conformance("KV-08")
@pytest.mark.parametrize("ext", [{"key": "k", "value": "v"}, {"namespace": "n", "value": "v"}])
def test_a_put_without_namespace_or_key(ns: Scene, ext: dict[str, str]) -> None:
    answer = ns.k1.ask(RequestCode.PUT_KV_CONFIG, ext)
    assert (answer.code, answer.remark) == (1, "namespace or key is null")


@pytest.mark.conformance("KV-09")
def test_a_put_without_value(ns: Scene, n: str) -> None:
    assert ns.k1.ask(RequestCode.PUT_KV_CONFIG, {"namespace": n, "key": "k"}).code == 0
    assert get(ns, n, "k") == not_found(n, "k")


@pytest.mark.conformance("KV-11")
@pytest.mark.parametrize("value", ["broker-a:4;broker-b:4", "a=b", 'say "hi" \\ \n', "é中\U0001f680", ""])
def test_any_text_is_a_value(ns: Scene, n: str, value: str) -> None:
    ns.put_kv(n, "k", value)
    assert get(ns, n, "k") == value


def value_of(server: NameServer) -> str | None:
    connection = Connection(server.port)
    answer = connection.ask(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": "k"})
    connection.close()
    return answer.get("value")


@pytest.mark.conformance("KV-12")
def test_values_outlive_a_restart(launch: Callable[..., NameServer]) -> None:
    server = launch()
    connection = Connection(server.port)
    ext = {"namespace": "n", "key": "k", "value": "v"}
    assert connection.ask(RequestCode.PUT_KV_CONFIG, ext).code == 0
    connection.close()
    server.stop()
    assert value_of(server.start()) == "v"


@pytest.mark.conformance("KV-13")
def test_values_of_javas_file_are_taken_over(launch: Callable[..., NameServer], tmp_path: Path) -> None:
    file = tmp_path / "kvConfig.json"
    file.write_text(json.dumps({"configTable": {"n": {"k": "v"}}}))
    assert value_of(launch(kvConfigPath=str(file))) == "v"


@pytest.mark.conformance("KV-14")
def test_javas_file_may_be_missing(ns: Scene) -> None:
    assert not Path(ns.config()["kvConfigPath"]).exists()
    assert "kvConfig" not in ns.server.said()
