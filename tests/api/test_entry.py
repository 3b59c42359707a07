"""The application is built once, and no garbage is looked for meanwhile."""

import gc

import pytest

from api.entry import LazyApp


def test_garbage_is_collected_again_once_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[bool] = []
    monkeypatch.setattr("api.app.create_app", lambda: collected.append(gc.isenabled()))
    app = LazyApp()
    assert app.built is app.built
    assert (collected, gc.isenabled()) == ([False], True)


def test_garbage_is_collected_again_if_it_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise LookupError

    monkeypatch.setattr("api.app.create_app", fail)
    with pytest.raises(LookupError):
        _ = LazyApp().built
    assert gc.isenabled()
