"""KV configuration."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound
from mqns.cli.http_api import HttpError, is_etag, name_in_path
from mqns.cli.output import Document, lines, table
from mqns.cli.previews import approved, preview_by_http
from mqns.cli.route_previews import of_kv
from mqns.cli.settings import CommandContext
from mqns.errors import ConfigError
from mqns.name_server import calls

Namespace = Annotated[str, typer.Argument(help="Namespace, as ORDER_TOPIC_CONFIG", show_default=False)]
Key = Annotated[str, typer.Argument(help="Key", show_default=False)]
Value = Annotated[str, typer.Argument(help="Value", show_default=False)]
Http = Annotated[
    str | None,
    typer.Option(
        "--http",
        help="HTTP side of a redis-namesrv, which then gets the request, with ETags and conditions",
        metavar="URL",
        show_default=False,
    ),
]
IfMatch = Annotated[
    str | None,
    typer.Option(
        "--if-match",
        help="Only if the value has this ETag still, or (*) if there is a value; needs --http",
        metavar="ETAG",
        show_default=False,
    ),
]
IfAbsent = Annotated[bool, typer.Option("--if-absent", help="Only if there is no value; needs --http")]
ANY: Final = "*"


class KVDocument(Document, frozen=True):
    """One key."""

    namespace: str
    key: str
    value: str


class TaggedKVDocument(KVDocument, frozen=True):
    """One key with the ETag of its value, read over HTTP."""

    etag: str


class KVTableDocument(Document, frozen=True):
    """All keys of a namespace."""

    namespace: str
    table: dict[str, str]


class KVChangeDocument(Document, frozen=True):
    """What was changed, and where; `value` null: deleted."""

    namespace: str
    key: str
    value: str | None
    name_servers: tuple[str, ...]


class KVHttpChangeDocument(Document, frozen=True):
    """What was changed over HTTP, unless it was so already; `value` null: deleted."""

    namespace: str
    key: str
    value: str | None
    http: str
    changed: bool


class _ValueJson(msgspec.Struct):
    value: str


class _WrittenJson(msgspec.Struct, rename="camel"):
    event_id: str | None


def add(app: typer.Typer, panel: str) -> None:
    """The commands `kv …`."""
    group = new_app("KV configuration, such as the order of topics' queues.")
    command(group)(get)
    command(group, "set", any_value=True, changes="something")(set_)
    command(group, changes="takes away")(delete)
    command(group, "list")(list_)
    app.add_typer(group, name="kv", rich_help_panel=panel)


def get(settings: CommandContext, namespace: Namespace, key: Key, http: Http = None) -> None:
    """The value of a key; with --http also its ETag, in JSON and YAML."""
    document = (
        _read(settings, namespace, key) if http is None else _read_by_http(settings, namespace, key, http)
    )
    settings.output.show(document, lambda: lines(document.value.split("\n")))


def set_(
    settings: CommandContext,
    namespace: Namespace,
    key: Key,
    value: Value,
    http: Http = None,
    if_match: IfMatch = None,
    if_absent: IfAbsent = False,
) -> None:
    """Set a key in all name servers; with --http in that of one redis-namesrv, under a condition if you like."""
    conditions = _conditions(http, if_match, if_absent=if_absent)
    if http is not None:
        _change_by_http(settings, namespace, key, value, http, conditions)
        return
    if not approved(settings, lambda: of_kv(settings, namespace, key, value)):
        return
    with settings.name_server() as server:
        server.call_all(calls.put_kv_config(namespace, key, value))
    _changed(settings, KVChangeDocument(namespace, key, value, settings.addresses))


def delete(
    settings: CommandContext, namespace: Namespace, key: Key, http: Http = None, if_match: IfMatch = None
) -> None:
    """Delete a key from all name servers, whether it was there or not.

    With --http from that of one redis-namesrv, where it has to be there."""
    conditions = _conditions(http, if_match)
    if http is not None:
        _change_by_http(settings, namespace, key, None, http, conditions)
        return
    if not approved(settings, lambda: of_kv(settings, namespace, key, None)):
        return
    with settings.name_server() as server:
        server.call_all(calls.delete_kv_config(namespace, key))
    _changed(settings, KVChangeDocument(namespace, key, None, settings.addresses))


def list_(settings: CommandContext, namespace: Namespace) -> None:
    """All keys of a namespace."""
    with settings.name_server() as server:
        found = server.get_kv_list(namespace)
    if found is None:
        raise NotFound(f"no namespace {namespace}")
    entries = dict(sorted(found.table.items()))
    settings.output.show(
        KVTableDocument(namespace, entries), lambda: table(("KEY", "VALUE"), list(entries.items()))
    )


def _changed(settings: CommandContext, document: KVChangeDocument) -> None:
    what = "deleted" if document.value is None else "set"
    settings.output.show(document, lambda: lines(f"{what} in {address}" for address in document.name_servers))


def _read(settings: CommandContext, namespace: str, key: str) -> KVDocument:
    with settings.name_server() as server:
        value = server.get_kv_config(namespace, key)
    if value is None:
        raise NotFound(f"no key {key} in namespace {namespace}")
    return KVDocument(namespace, key, value)


def _read_by_http(settings: CommandContext, namespace: str, key: str, url: str) -> TaggedKVDocument:
    api = settings.http_api(url)
    try:
        stored, etag = api.request_tagged(_ValueJson, "GET", value_path(namespace, key))
    except HttpError as error:
        if error.kind == "config-not-found":
            raise NotFound(f"no key {key} in namespace {namespace}") from None
        raise
    return TaggedKVDocument(namespace, key, stored.value, etag)


def _change_by_http(
    settings: CommandContext,
    namespace: str,
    key: str,
    value: str | None,
    url: str,
    conditions: Mapping[str, str],
) -> None:
    """Set a value, or delete it (None). Raises HttpError, also where a condition does not hold."""
    api = settings.http_api(url)
    method, body = ("DELETE", None) if value is None else ("PUT", {"value": value})
    path = value_path(namespace, key)
    change = f"{'delete' if value is None else 'set'} key {key} of namespace {namespace}"
    if value is not None:
        change += f" to {value}"
    if not approved(settings, lambda: [preview_by_http(api, change, method, path, body, conditions)]):
        return
    written, _ = api.request_tagged(_WrittenJson, method, path, body, conditions)
    document = KVHttpChangeDocument(namespace, key, value, api.url, written.event_id is not None)
    what = "deleted" if value is None else "set" if document.changed else "already set"
    settings.output.show(document, lambda: lines([f"{what} in {api.url}"]))


def value_path(namespace: str, key: str) -> str:
    """Return the path of a value."""
    return f"/v1/kv/{name_in_path(namespace)}/{name_in_path(key)}"


def _conditions(http: str | None, if_match: str | None, *, if_absent: bool = False) -> dict[str, str]:
    """Return the options as headers; an ETag may be given without its quotes, which shells take off."""
    if if_match is not None and if_absent:
        raise ConfigError("--if-match wants a value, --if-absent none: not both")
    if if_match is None and not if_absent:
        return {}
    if http is None:
        raise ConfigError("--if-match and --if-absent need --http: RocketMQ's requests have no conditions")
    if if_match is None:
        return {"If-None-Match": ANY}
    if not is_etag(if_match):
        raise ConfigError("--if-match: no ETag")
    return {"If-Match": if_match if if_match == ANY or '"' in if_match else f'"{if_match}"'}
