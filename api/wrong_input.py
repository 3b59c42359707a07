"""What is wrong with a request, in words of this API: none of the libraries' that found it reach a client."""

import re
from collections.abc import Mapping
from typing import Final, get_args

from flask import request
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType
from werkzeug.exceptions import HTTPException, MethodNotAllowed

OBJECT: Final = "has to be an object"
INTEGER: Final = "has to be a whole number"
FLAG: Final = "has to be true or false"
OF_TYPE: Final[Mapping[str, str]] = {
    "missing": "is required",
    "model_type": OBJECT,
    "model_attributes_type": OBJECT,
    "dict_type": OBJECT,
    "int_type": INTEGER,
    "int_parsing": INTEGER,
    "int_from_float": INTEGER,
    "bool_type": FLAG,
    "bool_parsing": FLAG,
    "string_type": "has to be text",
    "literal_error": "has to be {expected}",
    "greater_than_equal": "has to be at least {ge}",
    "less_than_equal": "has to be at most {le}",
    "string_too_short": "has to be of at least {min_length} character(s)",
    "string_too_long": "has to be of at most {max_length} characters",
    "too_short": "has to have at least {min_length} items",
    "too_long": "has to have at most {max_length} items",
}
"""By the type of pydantic's error; its context has what is in braces."""
OTHERWISE: Final = "is not as /openapi.json describes it"
OF_PYDANTIC: Final = frozenset(get_args(ErrorType))
"""The types of errors that pydantic has; all others are ours (PydanticCustomError), with our text."""

OF_STATUS: Final[Mapping[int, str]] = {
    400: "the request cannot be read",
    404: "no such path here",
    413: "the body is larger than httpBodyMaxBytes allows",
}
"""Of the errors that Flask and Werkzeug raise."""
BYTE: Final = re.compile(r"\(byte ([0-9]+)\)")


def invalid_field(error: ValidationError, *, of_body: bool) -> tuple[str, str]:
    """Return the first member or parameter that is wrong, with its path, and what it has to be."""
    details = error.errors(include_url=False, include_input=False)[0]
    return ".".join(map(str, details["loc"])) or "body", _expected(details, of_body)


def _expected(details: ErrorDetails, of_body: bool) -> str:
    kind = details["type"]
    if kind == "extra_forbidden":
        return "no such member here" if of_body else "no such parameter here"
    if kind not in OF_PYDANTIC:
        return details["msg"]
    return OF_TYPE.get(kind, OTHERWISE).format_map(details.get("ctx", {}))


def no_json(error: Exception) -> str:
    """Return why a body is no JSON, of the error of msgspec or Python."""
    if isinstance(error, RecursionError):
        return "the body nests arrays and objects too deeply"
    text = str(error)
    if place := BYTE.search(text):
        return f"the body is no JSON: byte {place[1]} does not belong there"
    if "truncated" in text:
        return "the body is no JSON: it ends too early"
    return "the body is no JSON: a text is no UTF-8, or a number is out of range"


def refusal(error: HTTPException) -> str:
    """Return why Flask or Werkzeug refuse a request."""
    if isinstance(error, MethodNotAllowed):
        return f"the path does not take {request.method}, but {', '.join(sorted(error.valid_methods or ()))}"
    return OF_STATUS.get(error.code or 500, "the request is refused")
