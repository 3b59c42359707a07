"""Names from peers as a terminal gets them: no character that would act there, in none of the forms."""

import json

import pytest
import yaml

from mqns.cli.output import OutputFormat, Printer, lines

ACTING = "\x1b[2J\x7f\x9b2J\x85\u200b\u202e\u2028\ufeff\U000e0001\n\t"
"""ESC, DEL, CSI, NEL, what has no width, what turns the direction, an end of a line, tag letters."""
NAME = f"é…{ACTING}名"


@pytest.mark.parametrize("form", OutputFormat)
def test_characters_that_act_are_escaped(form: OutputFormat, capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(form)
    printer.show({NAME: [NAME]}, lambda: lines([NAME]))
    printer.line({NAME: [NAME]}, NAME)
    out = capsys.readouterr().out
    assert [letter for letter in out if not letter.isprintable() and letter not in "\n\t"] == []


def test_names_come_back_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    for form, read in ((OutputFormat.JSON, json.loads), (OutputFormat.YAML, yaml.safe_load)):
        Printer(form).show({NAME: [NAME]}, lambda: "")
        assert read(capsys.readouterr().out) == {NAME: [NAME]}


def test_letters_stay_letters(capsys: pytest.CaptureFixture[str]) -> None:
    for form in (OutputFormat.JSON, OutputFormat.YAML):
        Printer(form).show(["é…名"], lambda: "")
        assert "é…名" in capsys.readouterr().out
