"""What the supervisor says of settings that it cannot read."""

from pathlib import Path

import pytest
import redis as redis_py

from mqnamesrv.shared_settings import SharedSettings
from registry.keys import Keys
from registry.options.catalogue import Options


def test_that_settings_cannot_be_read_and_its_end_are_logged_once(
    redis: redis_py.Redis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = SharedSettings(redis, Options(), tmp_path / "namesrv.conf")
    shared.follow()
    redis.set(Keys().settings, "no hash")
    for _ in range(2):
        shared.follow()
    redis.delete(Keys().settings)
    for _ in range(2):
        shared.follow()
    said = [message.partition(":")[0] for message in caplog.messages]
    assert said == ["settings cannot be read", "settings are read again"]


def test_without_a_file_to_rewrite_settings_are_not_read(
    redis: redis_py.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(Keys().settings, "no hash")
    SharedSettings(redis, Options(), None).follow()
    assert caplog.messages == []
