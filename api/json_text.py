"""JSON as this API reads and writes it (RFC 8259)."""

from typing import Any, Final

import msgspec
from flask import Response
from flask.json.provider import JSONProvider

from api.problems import Problem
from api.wrong_input import OBJECT, no_json

MOST: Final = {b",": 1_500_000, b"[": 150_000, b"{": 250_000}
"""How many of these a body may have; 100,000 topics have 600,000 commas and 100,000 braces. A value takes some 100
bytes, and Python's collector looks at all arrays again and again: nothing else runs while they are made."""


class StrictJSON(JSONProvider):
    """RFC 8259 only: no NaN, no halves of surrogate pairs, no nesting without end. Answers end with a line feed."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return encoded(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        text = s.encode() if isinstance(s, str) else s
        for sign, most in MOST.items():
            if text.count(sign) > most:
                raise Problem(413, "", f"a body may have {most} of {sign.decode()!r}")
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem(400, "malformed-json", no_json(error)) from error
        if value is None:  # which APIFlask would take for an object without members
            raise Problem(422, "invalid-field", f"body: {OBJECT}", field="body")
        return value

    def response(self, *args: Any, **kwargs: Any) -> Response:
        body = encoded(self._prepare_response_obj(args, kwargs)) + b"\n"
        return Response(body, mimetype="application/json")


def encoded(value: Any) -> bytes:
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
