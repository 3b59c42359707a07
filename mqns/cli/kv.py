"""KV configuration."""

from typing import Annotated

import typer

from mqns.cli.commands import command, new_app
from mqns.cli.exit_codes import NotFound
from mqns.cli.output import Document, lines, table
from mqns.cli.settings import CommandContext
from mqns.name_server import calls

Namespace = Annotated[str, typer.Argument(help="Namespace, as ORDER_TOPIC_CONFIG", show_default=False)]
Key = Annotated[str, typer.Argument(help="Key", show_default=False)]
Value = Annotated[str, typer.Argument(help="Value", show_default=False)]


class KVDocument(Document, frozen=True):
    """One key."""

    namespace: str
    key: str
    value: str


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


def add(app: typer.Typer, panel: str) -> None:
    """The commands `kv …`."""
    group = new_app("KV configuration, such as the order of topics' queues.")
    for function in (get, set_, delete, list_):
        command(group, function.__name__.rstrip("_"), any_value=function is set_)(function)
    app.add_typer(group, name="kv", rich_help_panel=panel)


def get(settings: CommandContext, namespace: Namespace, key: Key) -> None:
    """The value of a key."""
    with settings.name_server() as server:
        value = server.get_kv_config(namespace, key)
    if value is None:
        raise NotFound(f"no key {key} in namespace {namespace}")
    settings.output.show(KVDocument(namespace, key, value), lambda: lines(value.split("\n")))


def set_(settings: CommandContext, namespace: Namespace, key: Key, value: Value) -> None:
    """Set a key in all name servers."""
    with settings.name_server() as server:
        server.call_all(calls.put_kv_config(namespace, key, value))
    _changed(settings, KVChangeDocument(namespace, key, value, settings.addresses))


def delete(settings: CommandContext, namespace: Namespace, key: Key) -> None:
    """Delete a key from all name servers, whether it was there or not."""
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
