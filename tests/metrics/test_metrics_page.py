"""docs/metrics.md says what the catalogue says."""

from tools.metrics_page import PAGE, page


def test_the_page_is_the_catalogue() -> None:
    assert PAGE.read_text() == page(), "run: make generate"
