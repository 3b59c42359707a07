"""Python workers whose connection Java has closed."""

import socket

import pytest

from mqpipeline import daemon


def test_a_worker_that_java_has_left_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_: socket.socket, authenticated: bool) -> int:
        raise BrokenPipeError

    with socket.socket() as any_one:
        monkeypatch.setattr(daemon, "_worker", broken)
        assert daemon.worker(any_one, True) == 1
        monkeypatch.setattr(daemon, "_worker", lambda *_: 0)
        assert daemon.worker(any_one, True) == 0
    assert capfd.readouterr() == ("", "")
