"""The steps of a run, as they are shown."""

import logging
import sys
from io import StringIO

import pytest
from rich.console import Console

from mqpipeline.cli.progress import steps_shown


def console(file: StringIO, kind: str) -> Console:
    """One of a terminal of this kind (TERM), of none without one."""
    return Console(
        file=file, force_terminal=bool(kind), force_interactive=None, width=60, _environ={"TERM": kind}
    )


def test_on_a_terminal_a_bar_that_goes_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = StringIO()
    monkeypatch.setattr(sys, "__stderr__", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    handler, logger = logging.StreamHandler(), logging.getLogger()
    logger.addHandler(handler)
    try:
        with steps_shown(2, console(terminal, "xterm")) as step:
            step("the first")
            logger.warning("a line beside it")
            step("the second")
            step("one more than was expected")
    finally:
        logger.removeHandler(handler)
    assert handler.stream is terminal
    shown = terminal.getvalue()
    assert "a line beside it\n" in shown
    assert "one more than was expected" in shown
    assert shown.endswith("\x1b[2K")  # the line of the bar is cleared


@pytest.mark.parametrize("kind", ["", "dumb"], ids=["no terminal", "dumb"])
def test_elsewhere_a_line_for_each(caplog: pytest.LogCaptureFixture, kind: str) -> None:
    with (
        caplog.at_level(logging.INFO, "mqpipeline"),
        steps_shown(2, console(StringIO(), kind)) as step,
    ):
        step("the first")
        step("the second")
    assert caplog.messages == ["the first", "the second"]
