"""The OpenAPI document beyond what the views say of themselves: examples, errors, and names as clients need them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from api.dry_run_answers import describe
from api.problem_names import MEDIA_TYPE
from api.problems import REFERENCE, ProblemDocument
from rocketmq_remoting.typed import decoded

JSON: Final = "application/json"
SERVERS: Final = [{"url": "./", "description": "the server that has this document"}]
"""Relative, so that it is true behind any proxy, whatever `Host` the first request had."""


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client sends and gets, in the order in which they can be sent, after one another."""

    answer: Any
    parameters: dict[str, Any] = {}
    body: Any = None


EXAMPLES: Final = decoded(Path(__file__).with_name("openapi_examples.json").read_bytes(), dict[str, Example])
"""By operationId."""


def completed(spec: Any) -> Any:
    """Return the document of the views with what they leave out."""
    spec["components"]["schemas"]["ProblemDocument"] = ProblemDocument.model_json_schema()
    describe(spec)
    for operation in operations(spec):
        _add_errors(operation["responses"])
        for parameter in operation["parameters"]:
            parameter["schema"] = _never_null(parameter["schema"])
        if "requestBody" in operation:
            operation["requestBody"]["required"] = True
        _add_example(operation, EXAMPLES[operation["operationId"]])
    return spec | {part: _without_titles(spec[part]) for part in ("paths", "components")}


def operations(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the operations of a document."""
    for path in spec["paths"].values():
        yield from path.values()


def _add_errors(responses: dict[str, Any]) -> None:
    """Have every error of an operation answered with a problem document."""
    responses["default"] = {"description": "Any other error", "content": {JSON: {"schema": REFERENCE}}}
    for status, response in responses.items():
        if status >= "400" and "content" in response:
            response["content"] = {MEDIA_TYPE: response["content"].pop(JSON)}


def _add_example(operation: dict[str, Any], example: Example) -> None:
    for content in operation["responses"]["200"]["content"].values():
        content["example"] = example.answer
    if "requestBody" in operation:
        operation["requestBody"]["content"][JSON]["example"] = example.body
    for parameter in operation["parameters"]:
        if parameter["name"] in example.parameters:
            parameter["example"] = example.parameters[parameter["name"]]


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without null, which no text of a URL is: it is left out instead."""
    if {"type": "null"} not in schema.get("anyOf", ()):
        return schema
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    rest = {name: member for name, member in schema.items() if name not in ("anyOf", "default")}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _without_titles(value: Any) -> Any:
    """Return a part of the document without the titles of schemas, which pydantic makes of names: `Nowmillis`."""
    if isinstance(value, dict):
        return {
            name: member if name == "example" else _without_titles(member)
            for name, member in value.items()
            if name != "title" or not isinstance(member, str)
        }
    return [_without_titles(member) for member in value] if isinstance(value, list) else value
