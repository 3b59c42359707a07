"""The examples of the OpenAPI document, as requests."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from api.openapi import EXAMPLES, Example


class Request(NamedTuple):
    """One of the examples, as a client sends it."""

    id: str
    method: str
    path: str
    body: Any


def requests(spec: Any) -> Iterator[Request]:
    """Yield the requests of all examples in their order."""
    described = {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
    }
    for name, example in EXAMPLES.items():
        method, path, operation = described[name]
        yield Request(name, method, _target(path, operation, example), example.body)


def _target(path: str, operation: Any, example: Example) -> str:
    places = {parameter["name"]: parameter["in"] for parameter in operation["parameters"]}
    query = {}
    for name, value in example.parameters.items():
        if places[name] == "path":
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        else:
            query[name] = value
    return f"{path}?{urlencode(query)}" if query else path
