"""Conditions of requests (RFC 9110 section 13): `If-Match` and `If-None-Match`, by the entity tags of KV values."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from apiflask import APIFlask
from flask import Response, after_this_request, request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from api.compression import will_be_compressed
from api.problems import Problem, inputs
from registry.kv import ANY, Conditions

IF_MATCH: Final = "If-Match"
IF_NONE_MATCH: Final = "If-None-Match"
LOCATION: Final = "headers"
"""The input by which a view takes conditions."""
OF_GZIP: Final = "-gzip"
"""The end of the tag of a compressed answer: its bytes are others (RFC 9110 section 8.8.3.3)."""
TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
TAGS: Final = rf"[ \t]*\*[ \t]*|[ \t,]*{TAG}(?:[ \t]*,[ \t,]*{TAG})*[ \t,]*"
"""`*`, or a list of which elements may be empty (RFC 9110 section 5.6.1)."""
WEAK: Final = "W/"
DESCRIBED: Final[Mapping[int, Any]] = {
    200: {"headers": {"ETag": {"description": "The entity tag, a strong one", "schema": {"type": "string"}}}},
    304: {"description": "The client has this answer, as If-None-Match says"},
}
"""What a read with a tag adds to its responses in OpenAPI."""


def _tags(text: str) -> tuple[str, ...]:
    """Return the tags of a header, quotes taken off; a quoted `*`, which no value has, is left out."""
    if not re.fullmatch(TAGS, text):
        raise PydanticCustomError("tags", "neither * nor a list of entity tags in double quotes")
    if text.strip() == ANY:
        return (ANY,)
    return tuple(tag.replace('"', "") for tag in re.findall(TAG, text) if tag not in ('"*"', 'W/"*"'))


Tags = Annotated[
    tuple[str, ...],
    BeforeValidator(_tags),
    WithJsonSchema({"type": "string", "minLength": 1, "pattern": f"^(?:{TAGS})$"}),
]


class ConditionHeaders(BaseModel):
    """The tags that the headers of a request name; None without the header."""

    model_config = ConfigDict(frozen=True)

    if_match: Tags | None = Field(
        None, alias=IF_MATCH, description="tags of which the value has one; `*`: there is a value"
    )
    if_none_match: Tags | None = Field(
        None, alias=IF_NONE_MATCH, description="tags of which the value has none; `*`: there is no value"
    )

    @model_validator(mode="before")
    @classmethod
    def _by_their_names(cls, headers: dict[str, str]) -> dict[str, str | None]:
        """Return the headers as errors name them; APIFlask passes all, by names of fields."""
        return {IF_MATCH: headers.get("if_match"), IF_NONE_MATCH: headers.get("if_none_match")}

    def of_value(self) -> Conditions:
        """Return the conditions on a value, of which answers, compressed or not, have different tags.

        `If-Match` compares strongly: a weak tag matches nothing."""
        strong = None if self.if_match is None else [tag for tag in self.if_match if not tag.startswith(WEAK)]
        return Conditions(_of_value(strong), _of_value(self.if_none_match))


def _of_value(tags: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if tags is None else tuple(tag.removeprefix(WEAK).removesuffix(OF_GZIP) for tag in tags)


def answer_tagged(tag: str, headers: ConditionHeaders) -> None:
    """Give the answer to this read the tag of its value, and make it a 304 if the client has that answer."""
    seen = {seen.removeprefix(WEAK) for seen in headers.if_none_match or ()}

    @after_this_request
    def finish(response: Response) -> Response:
        own = f"{tag}{OF_GZIP}" if will_be_compressed(response) else tag
        response.set_etag(own)
        if not seen.isdisjoint((own, ANY)):
            response.status_code = 304
        return response


def install(app: APIFlask) -> None:
    """Refuse conditions that a view does not take: it would do its work whether they hold or not."""

    @app.before_request
    def refuse_other_conditions() -> None:
        if request.routing_exception is not None or LOCATION in inputs(app):
            return
        reads = request.method in ("GET", "HEAD")  # by If-None-Match an answer may be left out, and need not
        for header in (IF_MATCH,) if reads else (IF_MATCH, IF_NONE_MATCH):
            if header in request.headers:
                text = f"{header}: only /v1/kv/<namespace>/<key> has entity tags; nothing was done"
                raise Problem(400, "condition-not-supported", text, field=header)
