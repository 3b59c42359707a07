"""Output of commands: tables, JSON or YAML on standard output; errors and progress on standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

import msgspec
import yaml
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

ERROR_MOST: Final = 1000
"""Characters of an error that are printed; names of peers, and those on the command line, have any length."""
WIDE: Final = 100_000
"""Columns of an output that is no terminal, where lines are not folded."""


class OutputFormat(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Document(msgspec.Struct, frozen=True, rename="camel"):
    """Base of documents that are printed as JSON or YAML; members have RocketMQ's names."""


class Printer:
    """Prints the results of one command."""

    def __init__(self, form: OutputFormat, *, color: bool = True) -> None:
        self.form = form
        self.console = _console(color, stderr=False)
        self.errors = _console(color, stderr=True)

    @property
    def on_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return self.console.is_terminal

    def show(self, value: object, table: Callable[[], RenderableType]) -> None:
        """Print a result: `value` (documents, lists, dicts, text) as JSON or YAML, or the table of `table()`."""
        made = table() if self.form is OutputFormat.TABLE else self.text(value)
        if isinstance(made, str):
            self._write(made)
        else:
            self.console.print(made)

    def text(self, value: object) -> str:
        """Return a result as JSON or YAML."""
        return _yaml(value) if self.form is OutputFormat.YAML else _json(value, indent=2)

    def line(self, value: object, line: str) -> None:
        """Print one result of a series and flush: a line, a JSON document on one line, or a YAML document."""
        if self.form is OutputFormat.JSON:
            self._write(_json(value))
        elif self.form is OutputFormat.YAML:
            self._write(self.text(value))
        else:
            self._write(plain(line))
        self.console.file.flush()

    def error(self, text: str) -> None:
        """Print one line on standard error, cut if it is long."""
        line = " ".join(text.splitlines())
        shown = line if len(line) <= ERROR_MOST else f"{line[:ERROR_MOST]}…"
        print(f"mqns: {plain(shown)}", file=self.errors.file)

    def _write(self, text: str) -> None:
        """Print text without rich, which would turn tabs into blanks."""
        print(text, file=self.console.file)

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a progress bar on a terminal; the yielded function is to be called `total` times."""
        if not self.errors.is_terminal or total == 0:
            yield lambda: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.errors, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)

    @contextmanager
    def status(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show on a terminal how far work of unknown length is; the yielded function takes the text."""
        if not self.errors.is_terminal:
            yield lambda text: None
            return
        with self.errors.status(what) as shown:
            yield lambda text: shown.update(Text(plain(f"{what}: {text}")))


def builtins(value: object) -> Any:
    """Return a result as dicts, lists, text and numbers; keys are text."""
    return msgspec.to_builtins(value, str_keys=True)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table without lines; columns of numbers are right-aligned."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    listed = [list(row) for row in rows]
    for index, heading in enumerate(headings):
        number = bool(listed) and all(isinstance(row[index], int) for row in listed)
        made.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in listed:
        made.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row))
    return made


def lines(texts: Iterable[str]) -> str:
    """Return one text per line."""
    return "\n".join(map(plain, texts))


def plain(text: str) -> str:
    """Return text for one line of a terminal, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def _json(value: object, indent: int | None = None) -> str:
    """Return JSON; characters that would act on a terminal are escaped."""
    text = json.dumps(builtins(value), ensure_ascii=False, indent=indent)
    if _is_plain(text):
        return text
    return "".join(c if _is_plain(c) else _json_escape(c) for c in text)


def _is_plain(text: str) -> bool:
    """Return whether a terminal prints it as it is: letters and ends of lines."""
    return text.replace("\n", "").isprintable()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _yaml(value: object) -> str:
    """Return YAML; in ASCII if it has characters that would act on a terminal."""
    members = builtins(value)
    text: str = yaml.safe_dump(members, allow_unicode=True, sort_keys=False, explicit_start=True)
    if not _is_plain(text):
        text = yaml.safe_dump(members, sort_keys=False, explicit_start=True)
    return text.rstrip("\n")


def _console(color: bool, *, stderr: bool) -> Console:
    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else WIDE
    return Console(
        file=file,
        no_color=True if not color else None,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
    )
