"""The steps of a run, as they are shown."""

import logging
import sys
from io import StringIO

import pytest
from rich.console import Console

from mqpipeline.cli.progress import steps_shown


def test_on_a_terminal_a_bar_that_goes_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = StringIO()
    monkeypatch.setattr(sys, "__stderr__", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    handler, logger = logging.StreamHandler(), logging.getLogger()
    logger.addHandler(handler)
    try:
        with steps_shown(2, Console(file=terminal, force_terminal=True, width=60)) as step:
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


def test_elsewhere_a_line_for_each(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "mqpipeline"),
        steps_shown(2, Console(file=StringIO(), force_terminal=False)) as step,
    ):
        step("the first")
        step("the second")
    assert caplog.messages == ["the first", "the second"]
