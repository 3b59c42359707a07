"""JSON as this API reads and writes it (RFC 8259)."""

from typing import Any

import msgspec
from flask import Response
from flask.json.provider import JSONProvider

from api.problems import Problem


class StrictJSON(JSONProvider):
    """RFC 8259 only: no NaN, no halves of surrogate pairs, no nesting without end. Answers end with a line feed."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return msgspec.json.encode(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        try:
            return msgspec.json.decode(s)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(400, "malformed-json", str(error)) from error

    def response(self, *args: Any, **kwargs: Any) -> Response:
        body = msgspec.json.encode(self._prepare_response_obj(args, kwargs)) + b"\n"
        return Response(body, mimetype="application/json")
