"""What pages of brokers, drains and topics are where the store is away, and for a caller that may not read."""

import pytest
import redis as redis_py

from api.app import create_app
from registry.options.catalogue import Options
from tests.api.console.page import load
from tests.api.http import Http

PATHS = ("brokers", "brokers/broker-a", "drains", "topics", "topics/TopicA")


@pytest.mark.parametrize("path", PATHS)
def test_a_store_that_is_away_is_said(storeless: Http, path: str) -> None:
    page = load(storeless, f"/console/{path}")
    assert page.status == 503
    assert "The store is away" in page.text
    assert 'hx-trigger="' in page.html  # it looks again by itself
    assert not any(form.buttons.keys() & {"Drain …", "Set …", "Delete …", "End …"} for form in page.forms)


@pytest.mark.parametrize("path", PATHS)
def test_one_that_may_not_read_is_told_why(redis: redis_py.Redis, path: str) -> None:
    denied = Http(create_app(Options(access_read="off"), redis=redis).test_client())
    page = load(denied, f"/console/{path}")
    assert page.status == 401
    assert "You may not see this" in page.text
