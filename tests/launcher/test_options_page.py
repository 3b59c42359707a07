"""docs/options.md says what the catalogue says."""

from pathlib import Path

from launcher.options_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"


def test_the_page_is_the_catalogue() -> None:
    assert PAGE.read_text() == page(), "run: python -m launcher.options_page > docs/options.md"
