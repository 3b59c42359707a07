"""`mqns settings`, against the HTTP side of a real name server."""

import pytest
import yaml

from mqns.cli.exit_codes import ExitCode
from mqns.cli.server_settings import STORE_AWAY, OneOptionDocument, OptionsDocument
from registry.options.catalogue import CATALOGUE
from testbed.nameserver import NameServer
from tests.mqns.cli.conftest import Ended, http_side, run


@pytest.fixture
def url(servers: list[NameServer]) -> str:
    return http_side(servers[0])


def settings(url: str, *arguments: str) -> Ended:
    return run("settings", *arguments, "--http", url)


def test_all_options_are_listed(url: str) -> None:
    document = settings(url, "-o", "json").document
    listed = {option["key"]: option for option in document["options"]}
    assert len(listed) == len(CATALOGUE)
    assert listed["httpThreads"]["source"] == "default"
    rows = settings(url).words
    assert rows[0] == ["OPTION", "VALUE", "DEFAULT", "SOURCE", "EFFECT", "SHARED"]
    assert [row[0] for row in rows[1:]] == list(listed)


def test_those_that_are_not_as_by_default(url: str) -> None:
    changed = {
        option["key"]: option for option in settings(url, "--changed", "-o", "json").document["options"]
    }
    assert changed["listenPort"]["source"] == "environment"
    assert "httpThreads" not in changed


def test_a_shared_value_that_is_not_in_force_is_shown(url: str) -> None:
    run("config", "set", "serverSelectorThreads", "7", "--http", url)
    assert ["serverSelectorThreads", "3", "3", "default", "listed", "7"] in settings(url, "--changed").words
    run("config", "set", "serverSelectorThreads", "3", "--http", url)
    assert settings(url, "serverSelectorThreads", "-o", "json").document["differs"] is False


def test_one_option(url: str) -> None:
    document = yaml.safe_load(settings(url, "enableTopicList", "-o", "yaml").out)
    assert (document["value"], document["effect"]) == ("true", "live")
    assert settings(url, "enableTopicList").words[0] == ["key", "enableTopicList"]


def test_an_unknown_option(url: str) -> None:
    ended = settings(url, "lisenPort")
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err == "mqns: no option 'lisenPort'; did you mean listenPort?\n"
    assert settings(url, "").code == ExitCode.REFUSED


def test_one_is_not_filtered(url: str) -> None:
    assert settings(url, "listenPort", "--changed").code == ExitCode.WRONG_USAGE


def test_what_has_no_effect_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    document = OptionsDocument([], ["MQNS_\x1b is no option"])
    monkeypatch.setattr("mqns.cli.http_api.HttpApi.request", lambda *_: document)
    assert settings("localhost").err == "mqns: MQNS_\\x1b is no option\n"


def test_that_the_store_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one = OneOptionDocument(
        "listenPort", "V", "1", "9876", "file", "restart", "d", None, False, shared_known=False
    )
    every = OptionsDocument([one], [], shared_known=False)
    for document, arguments in ((every, ()), (one, ("listenPort",))):
        monkeypatch.setattr("mqns.cli.http_api.HttpApi.request", lambda *_, document=document: document)
        ended = settings("localhost", *arguments)
        assert (ended.code, ended.err) == (ExitCode.OK, f"mqns: {STORE_AWAY}\n")
