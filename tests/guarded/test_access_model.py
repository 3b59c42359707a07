"""Random worlds and requests: a worker, what it answers by its bytes, HTTP and a plain model admit the same."""

import asyncio
import secrets
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
import redis as redis_py
from hypothesis import settings

from mqnamesrv.store import EmbeddedStore
from tests.guarded.history import History

NIGHTLY: Final = settings.get_current_profile_name() == "nightly"
REQUESTS: Final = 100_000 if NIGHTLY else 10_000
OF_A_HISTORY: Final = 150
BY_BYTES_LEAST: Final = 0.1
"""Of the frames, how many are answered by their bytes: what is compared there must not become rare unseen."""


@pytest.mark.conformance("AC-43")
@pytest.mark.timeout(7200 if NIGHTLY else 600)
def test_all_ways_to_an_answer_agree_with_the_model(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    """A change is judged by the same histories, each night by others."""
    seen, begun = Counter[str](), 0
    series = secrets.token_hex(4) if NIGHTLY else "suite"
    while seen["requests"] < REQUESTS:
        begun += 1
        folder = tmp_path / f"{series}-{begun}"
        folder.mkdir()
        history = History(folder.name, store.url, redis, folder)
        try:
            asyncio.run(history.play(OF_A_HISTORY))
        except AssertionError as error:
            raise AssertionError(f"{folder.name}, request {history.seen['requests']}: {error}") from error
        seen += history.seen
    print(f"{begun} histories: {dict(seen)}")
    assert seen["by bytes"] > BY_BYTES_LEAST * seen["frames"]
    assert min(seen[f"wire: {result}"] for result in ("answered", "refused", "changed", "silent")) > 0
    assert min(seen[f"HTTP: {result}"] for result in ("answered", "400", "401", "403", "429")) > 0
    assert min(seen["revoked"], seen["restored"]) > 0
