"""Typed ext fields, and which view of a route a request asks for."""

from typing import Any

import pytest

from registry.options.catalogue import Options
from rocketmq_remoting.remoting_command import Command, SerializeType
from worker.arguments import boolean, integer, shown
from worker.cache.views import CLUSTER_INFO, AskedView, asked_view, cache_key


def command(code: int = 105, version: int = 0, **ext: str) -> Command:
    return Command(code, 1, version=version, ext=ext or None)


@pytest.mark.parametrize(
    ("text", "bits", "expected"),
    [
        pytest.param("0", 64, 0, id="zero"),
        pytest.param("+5", 64, 5, id="plus"),
        pytest.param("-5", 64, -5, id="minus"),
        pytest.param("9223372036854775807", 64, 2**63 - 1, id="longest"),
        pytest.param("9223372036854775808", 64, None, id="too-long"),
        pytest.param("-2147483648", 32, -(2**31), id="least-int"),
        pytest.param("2147483648", 32, None, id="no-int"),
        pytest.param("", 64, None, id="empty"),
        pytest.param("abc", 64, None, id="letters"),
        pytest.param(" 1", 64, None, id="blank"),
        pytest.param("1.5", 64, None, id="fraction"),
        pytest.param("\u0661", 64, None, id="digits-of-another-script"),
    ],
)
def test_a_number_that_does_not_parse_is_missing(text: str, bits: int, expected: int | None) -> None:
    assert integer(command(n=text), "n", bits) == expected


def test_a_missing_number_is_none() -> None:
    assert integer(command(), "n") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("true", True, id="true"),
        pytest.param("TrUe", True, id="any-case"),
        pytest.param("false", False, id="false"),
        pytest.param("yes", False, id="anything-else"),
        pytest.param("", False, id="empty"),
    ],
)
def test_true_in_any_case_is_true(text: str, expected: bool) -> None:
    assert boolean(command(b=text), "b") is expected


def test_a_missing_flag_is_none() -> None:
    binary = Command(105, 1, ext={"b": ""}, serialize_type=SerializeType.ROCKETMQ)
    assert (boolean(command(), "b"), boolean(binary, "b")) == (None, None)


def test_a_missing_field_is_shown_as_java_shows_it() -> None:
    assert (shown(None), shown(""), shown("x")) == ("null", "", "x")


LEGACY, STANDARD = AskedView(False, False, None), AskedView(True, False, None)


@pytest.mark.parametrize(
    ("version", "ext", "options", "expected"),
    [
        pytest.param(400, {}, {}, LEGACY, id="before-4.9.4"),
        pytest.param(401, {}, {}, STANDARD, id="4.9.4"),
        pytest.param(317, {"acceptStandardJsonOnly": "True"}, {}, STANDARD, id="asked-for"),
        pytest.param(317, {"acceptStandardJsonOnly": "false"}, {}, LEGACY, id="not-asked-for"),
        pytest.param(
            479, {"__ZONE_MODE": "TRUE", "__ZONE_NAME": "Z1"}, {}, AskedView(True, False, "z1"), id="zone"
        ),
        pytest.param(479, {"__ZONE_MODE": "false", "__ZONE_NAME": "z1"}, {}, STANDARD, id="zone-mode-off"),
        pytest.param(479, {"__ZONE_NAME": "z1"}, {}, STANDARD, id="no-zone-mode"),
        pytest.param(479, {"__ZONE_MODE": "true", "__ZONE_NAME": "  "}, {}, STANDARD, id="blank-zone"),
        pytest.param(
            412, {}, {"omit_v5_members": True}, AskedView(True, True, None), id="without-5.x-members"
        ),
        pytest.param(413, {}, {"omit_v5_members": True}, STANDARD, id="5.x-clients-get-them"),
    ],
)
def test_a_request_asks_for_one_view(
    version: int, ext: dict[str, str], options: dict[str, Any], expected: AskedView
) -> None:
    request = Command(105, 1, version=version, ext={"topic": "T", **ext})
    assert asked_view(request, Options(**options)) == expected
    assert cache_key(request, Options(**options)) == ("T", expected)


def test_only_routes_and_cluster_info_are_kept() -> None:
    assert cache_key(command(106), Options()) == CLUSTER_INFO
    assert cache_key(command(105), Options()) is None
    assert cache_key(command(206, topic="T"), Options()) is None
    assert cache_key(command(105, topic=""), Options()) != CLUSTER_INFO
