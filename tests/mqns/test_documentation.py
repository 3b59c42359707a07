"""docs/client.md, run: every example in its order, against the real name server; and those of docstrings."""

import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import mqns
from testbed.nameserver import ONE_WORKER, NameServer

DOCUMENT = Path(__file__).parents[2] / "docs" / "client.md"
SHOWN_ADDRESS = "127.0.0.1:9876"
FENCE = re.compile(r"^```(python)?$", re.MULTILINE)


def test_the_document_shows_what_happens(tmp_path: Path) -> None:
    server = NameServer(tmp_path, ONE_WORKER).start()
    try:
        text = FENCE.sub("", DOCUMENT.read_text()).replace(SHOWN_ADDRESS, f"127.0.0.1:{server.port}")
        examples = doctest.DocTestParser().get_doctest(text, {}, DOCUMENT.name, str(DOCUMENT), 0)
        reported: list[str] = []
        results = doctest.DocTestRunner().run(examples, out=reported.append)
    finally:
        server.stop()
    assert results.attempted > 20
    assert not results.failed, "".join(reported)


def test_docstrings_show_what_happens() -> None:
    results = [
        doctest.testmod(import_module(module.name))
        for module in pkgutil.walk_packages(mqns.__path__, "mqns.")
        if not module.name.endswith("__main__")
    ]
    assert sum(result.attempted for result in results) > 0
    assert not any(result.failed for result in results)
