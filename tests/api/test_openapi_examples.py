"""Each example of the OpenAPI document is of its schema, and is what happens when they are sent one after another."""

import json
from typing import Any

import jsonschema
import pytest
import redis as redis_py
from jsonschema.protocols import Validator

from api.openapi import EXAMPLES
from mqpipeline.serving.publish import publish
from registry.announcements import announce
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.plans import Origin
from tests.api.http import Http
from tests.api.openapi_examples import requests
from tests.api.test_documentation import steady
from tests.mqpipeline.serving.example import RUN, results

PEER = {"REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": "44690"}
OF_THE_PIPELINE = "History"
"""The tag of operations whose answers come from another process: tests/mqpipeline/history asks that."""


@pytest.fixture(scope="module")
def spec(quick: Http) -> Any:
    return quick.ok("GET", "/openapi.json")


def operations(spec: Any) -> dict[str, Any]:
    listed = [operation for methods in spec["paths"].values() for operation in methods.values()]
    named = {operation["operationId"]: operation for operation in listed}
    assert len(named) == len(listed)
    return named


def validator(spec: Any, schema: Any) -> Validator:
    return jsonschema.Draft202012Validator(
        schema | {"components": spec["components"]}, format_checker=jsonschema.FormatChecker()
    )


def test_each_operation_has_an_example_of_its_schema(spec: Any) -> None:
    for name, operation in operations(spec).items():
        contents = [*operation["responses"]["200"]["content"].values()]
        contents += operation.get("requestBody", {"content": {}})["content"].values()
        for content in contents:
            validator(spec, content["schema"]).validate(content["example"])
        for parameter in operation["parameters"]:
            given = "example" in parameter
            assert given or not parameter["required"], (name, parameter["name"])
            if given:
                validator(spec, parameter["schema"]).validate(parameter["example"])


def test_no_example_is_of_nothing(spec: Any) -> None:
    named = operations(spec)
    assert set(EXAMPLES) == set(named)
    for name, example in EXAMPLES.items():
        assert set(example.parameters) <= {parameter["name"] for parameter in named[name]["parameters"]}, name
        assert (example.body is not None) is ("requestBody" in named[name]), name


def test_a_wrong_example_would_be_seen(spec: Any) -> None:
    schema = operations(spec)["getBroker"]["responses"]["200"]["content"]["application/json"]["schema"]
    with pytest.raises(jsonschema.ValidationError):
        validator(spec, schema).validate({"brokerName": 1})


def with_ids(value: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(value)
    for shown, actual in ids.items():
        text = text.replace(shown, actual)
    return json.loads(text)


def test_the_examples_happen(http: Http, redis: redis_py.Redis, spec: Any) -> None:
    publish(redis, "default", RUN, results())
    named = operations(spec)
    ids: dict[str, str] = {}  # of tokens, which differ each time
    for request in requests(spec):
        if OF_THE_PIPELINE in named[request.id]["tags"]:
            continue
        run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)
        for worker, address in (("w1", "10.0.0.1:9876"), ("w2", "10.0.0.2:9876")):
            run(announce(Keys(), worker, address), redis)
        path, body = with_ids(request.path, ids), with_ids(request.body, ids)
        reply = http(request.method, path, body, environ_base=PEER)
        assert reply.status == 200, (request, reply)
        example = EXAMPLES[request.id].answer
        if isinstance(example, dict) and "token" in example:
            ids[example["tokenId"]] = reply.json["tokenId"]
        if request.id == "getSettings":
            assert example["settings"].items() <= reply.json["settings"].items()
        elif request.id == "getMetrics":
            text = http.client.get(request.path).text
            assert set(example.splitlines()) <= set(text.splitlines())
        elif isinstance(example, str):
            assert http.client.get(request.path).text == example, request.id
        else:
            assert steady(reply.json) == steady(example), request.id
