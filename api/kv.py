"""KV configuration (100, 101, 102, 219)."""

from typing import Annotated

from apiflask import APIBlueprint
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from api.conditions import DESCRIBED, ConditionHeaders, answer_tagged
from api.name_server import name_server, origin
from api.paging import PageQuery, page
from api.shapes import Answer, Body, Query, Written
from registry import kv
from registry.errors import ConfigNotFound

bp = APIBlueprint("kv", __name__, url_prefix="/v1/kv", tag="KV")

UNMET = "The condition does not hold; nothing was done"
Key = Annotated[str, Field(min_length=1)]


def _all(given: bool) -> bool:
    if not given:
        raise PydanticCustomError(
            "all", "true deletes all values of the namespace; a key is a part of the path"
        )
    return given


class Namespaces(Answer):
    namespaces: tuple[str, ...]
    next: str | None


class Table(Answer):
    """`next` is the key after which the rest begins."""

    namespace: str
    table: dict[str, str]
    next: str | None


class Value(Answer):
    namespace: str
    key: str
    value: str


class AllQuery(Query):
    """`all` has to be true: all values of the namespace are meant."""

    all: Annotated[bool, AfterValidator(_all), Field(json_schema_extra={"const": True})]


class TableBody(Body):
    table: dict[Key, str]


class ValueBody(Body):
    value: str


@bp.get("")
@bp.input(PageQuery, location="query")
@bp.output(Namespaces)
@bp.doc(operation_id="listKvNamespaces")
def namespaces(query_data: PageQuery) -> Namespaces:
    """KV namespaces by name"""
    server = name_server()
    names, after = page(server.run(kv.namespaces(server.keys)), query_data)
    return Namespaces(namespaces=tuple(names), next=after)


@bp.get("/<namespace>")
@bp.input(PageQuery, location="query")
@bp.output(Table)
@bp.doc(operation_id="getKvTable", responses=[404])
def table(namespace: str, query_data: PageQuery) -> Table:
    """The values of a namespace by key"""
    server = name_server()
    values = server.run(kv.table(server.keys, namespace))
    keys, after = page(values, query_data)
    return Table(namespace=namespace, table={key: values[key] for key in keys}, next=after)


@bp.put("/<namespace>")
@bp.input(TableBody)
@bp.output(Written)
@bp.doc(operation_id="putKvTable")
def put_table(namespace: str, json_data: TableBody) -> Written:
    """Make a namespace hold these values and no others"""
    server = name_server()
    plan = kv.replace_table(server.keys, namespace, json_data.table, origin(), server.limits)
    return Written.of(server.run(plan))


@bp.delete("/<namespace>")
@bp.input(AllQuery, location="query")
@bp.output(Written)
@bp.doc(operation_id="deleteKvTable", responses=[404])
def clear_table(namespace: str, query_data: AllQuery) -> Written:
    """Delete all values of a namespace

    `all=true` says that no key was forgotten. The empty namespace stays, as it does on the wire."""
    server = name_server()
    server.run(kv.table(server.keys, namespace))
    return Written.of(server.run(kv.replace_table(server.keys, namespace, {}, origin(), server.limits)))


@bp.get("/<namespace>/<path:key>")
@bp.input(ConditionHeaders, location="headers")
@bp.output(Value)
@bp.doc(
    operation_id="getKvValue",
    responses={**DESCRIBED, 404: "Not Found", 412: "The value has another ETag than If-Match names"},
)
def value(namespace: str, key: str, headers_data: ConditionHeaders) -> Value:
    """One value

    Its ETag changes with each change of the value, also when an earlier value comes back."""
    server = name_server()
    plan = kv.get_tagged(server.keys, namespace, key, headers_data.of_value().if_match)
    stored = server.run(plan)
    answer_tagged(stored.tag, headers_data)
    return Value(namespace=namespace, key=key, value=stored.value)


@bp.put("/<namespace>/<path:key>")
@bp.input(ConditionHeaders, location="headers")
@bp.input(ValueBody)
@bp.output(Written)
@bp.doc(operation_id="putKvValue", responses={412: UNMET})
def put_value(namespace: str, key: str, headers_data: ConditionHeaders, json_data: ValueBody) -> Written:
    """Set a value; its namespace is made with it

    With `If-Match` only if it still has the ETag that was read, with `If-None-Match: *` only if there is none."""
    server = name_server()
    plan = kv.put(
        server.keys,
        namespace,
        key,
        json_data.value,
        origin(),
        limits=server.limits,
        conditions=headers_data.of_value(),
    )
    return Written.of(server.run(plan))


@bp.delete("/<namespace>/<path:key>")
@bp.input(ConditionHeaders, location="headers")
@bp.output(Written)
@bp.doc(operation_id="deleteKvValue", responses={404: "Not Found", 412: UNMET})
def delete_value(namespace: str, key: str, headers_data: ConditionHeaders) -> Written:
    """Delete a value; with `If-Match` only if it still has the ETag that was read"""
    server = name_server()
    plan = kv.delete(server.keys, namespace, key, origin(), headers_data.of_value())
    event_id = server.run(plan)
    if not event_id:
        raise ConfigNotFound(f"no value of {key!r} in KV namespace {namespace!r}")
    return Written.of(event_id)
