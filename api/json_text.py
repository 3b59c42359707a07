"""JSON as this API reads and writes it (RFC 8259)."""

from typing import Any

import msgspec
from flask import Response
from flask.json.provider import JSONProvider

from api.problems import Problem


class StrictJSON(JSONProvider):
    """RFC 8259 only: no NaN, no halves of surrogate pairs, no nesting without end. Answers end with a line feed."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return _encoded(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        try:
            return msgspec.json.decode(s)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(400, "malformed-json", str(error)) from error

    def response(self, *args: Any, **kwargs: Any) -> Response:
        body = _encoded(self._prepare_response_obj(args, kwargs)) + b"\n"
        return Response(body, mimetype="application/json")


def _encoded(value: Any) -> bytes:
    """Return the JSON; what the store has that is no UTF-8, which is damage, is written as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(msgspec.to_builtins(value)))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(member) for key, member in value.items()}
    return [_escaped(member) for member in value] if isinstance(value, list | tuple) else value
