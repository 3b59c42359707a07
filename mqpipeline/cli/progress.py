"""The steps of a run on standard error: a bar on a terminal, else a line for each."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mqpipeline import building

log = logging.getLogger(__name__)


@contextmanager
def steps_shown(expected: int, console: Console | None = None) -> Iterator[building.Progress]:
    """Yield what is called with each step, of which so many are `expected`; a long history has more.

    The bar goes at the end. What is logged meanwhile stays above it."""
    console = console or Console(stderr=True)
    if not console.is_interactive:
        yield log_step
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar, _logged_above():
        task = bar.add_task("starting", total=expected)

        def step(text: str) -> None:
            done = bar.tasks[task].completed + 1
            bar.update(task, description=text, completed=done, total=max(expected, done + 1))

        yield step


def log_step(text: str) -> None:
    """Log a step."""
    log.info("%s", text)


@contextmanager
def _logged_above() -> Iterator[None]:
    """Have handlers write to the standard error that a bar has put in place of their own."""
    before = [
        (handler, handler.setStream(sys.stderr))
        for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.__stderr__
    ]
    try:
        yield
    finally:
        for handler, stream in before:
            handler.setStream(stream or sys.__stderr__)
