"""The description of this API, made from its code."""

import json
import re
from typing import Any

import pytest
import redis as redis_py

from api.app import create_app
from registry.options.catalogue import Options
from tests.api.http import Http

PLAIN = ("/metrics", "/rocketmq/")


@pytest.fixture(scope="module")
def spec(quick: Http) -> Any:
    return quick.ok("GET", "/openapi.json")


def test_every_operation_declares_its_responses(spec: Any) -> None:
    operations = [
        (path, method, operation)
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) > 40
    for path, method, operation in operations:
        assert 0 < len(operation["summary"].splitlines()[0]) == len(operation["summary"]) < 90, (path, method)
        assert operation["tags"], (path, method)
        for status, response in operation["responses"].items():
            answer = "text/plain" if path.startswith(PLAIN) else "application/json"
            media_type = answer if status == "200" else "application/problem+json"
            assert list(response["content"]) == [media_type] * (status != "304"), (path, method, status)


def test_every_reference_leads_somewhere(spec: Any) -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for member in value.values() for found in references(member)]
        return [found for member in value for found in references(member)] if isinstance(value, list) else []

    schemas = {f"#/components/schemas/{name}" for name in spec["components"]["schemas"]}
    assert set(references(spec)) <= schemas


def test_bodies_are_described_as_they_are_checked(spec: Any) -> None:
    body = spec["components"]["schemas"]["RegistrationBody"]
    assert body["additionalProperties"] is False
    assert body["required"] == ["cluster", "brokerName", "brokerAddr", "brokerId"]


def test_nothing_is_loaded_from_elsewhere(spec: Any) -> None:
    spec = dict(spec, servers=[])
    assert "//" not in json.dumps(spec)


def test_operations_have_names_that_stay(spec: Any) -> None:
    names = [operation["operationId"] for path in spec["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    verb_and_noun = re.compile(
        "(get|list|put|delete|update|set|send|request|watch|create|rotate|revoke|restore)([A-Z][a-z]+)+|(un)?registerBroker"
    )
    assert [name for name in names if not verb_and_noun.fullmatch(name)] == []


def test_the_document_is_the_same_whatever_host_was_asked_first() -> None:
    app = create_app(Options(http_allowed_hosts="*"), redis=redis_py.Redis())
    first = app.test_client().get("/openapi.json", headers={"Host": "elsewhere.example"})
    assert first.status_code == 200
    assert "elsewhere" not in first.text
