"""Subscription data, built by the rules of Java's split and trim."""

import pytest

from mqns.errors import SubscriptionError
from mqns.heartbeats.subscriptions import Expression, sql92, subscription
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.heartbeat import SubscriptionData, decode_heartbeat
from tests.rocketmq_remoting.golden import requests


def recorded_subscriptions() -> list[SubscriptionData]:
    """All that Java clients have sent."""
    found = {
        sub
        for command in requests(RequestCode.HEART_BEAT)
        for consumer in decode_heartbeat(command.body).consumer_data_set
        for sub in consumer.subscription_data_set
    }
    return sorted(found, key=repr)


@pytest.mark.parametrize(
    "recorded", recorded_subscriptions(), ids=lambda sub: f"{sub.topic} {sub.sub_string}"
)
def test_what_java_clients_sent_is_built_from_the_same_text(recorded: SubscriptionData) -> None:
    built = subscription(
        recorded.topic,
        Expression(recorded.sub_string, recorded.expression_type),
        version_ms=recorded.sub_version,
    )
    assert set(built.tags_set) == set(recorded.tags_set)
    assert set(built.code_set) == set(recorded.code_set)
    assert (
        built.topic,
        built.sub_string,
        built.sub_version,
        built.class_filter_mode,
        built.expression_type,
    ) == (
        recorded.topic,
        recorded.sub_string,
        recorded.sub_version,
        recorded.class_filter_mode,
        recorded.expression_type,
    )


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("TagA", ("TagA",)),
        ("TagA || TagB", ("TagA", "TagB")),
        ("TagA||", ("TagA",)),
        ("||TagA", ("TagA",)),
        ("a|b", ("a|b",)),
        ("a|||b", ("a", "|b")),
        ("B || A || B", ("B", "A")),
        pytest.param(" ", (), id="a blank"),
        pytest.param("|| ||", (), id="a blank between"),
        pytest.param("\x00\t A\x1f", ("A",), id="control characters are blanks"),
        pytest.param("\u00a0A\u2003", ("\u00a0A\u2003",), id="other white space is not"),
        pytest.param("* || A", ("*", "A"), id="a star among tags"),
    ],
)
def test_tags_are_what_stands_between_double_bars(text: str, tags: tuple[str, ...]) -> None:
    built = subscription("T", text, version_ms=7)
    assert built.tags_set == tags
    assert len(built.code_set) == len(tags)
    assert built.sub_string == text


def test_tags_with_one_hash_have_one_code() -> None:
    built = subscription("T", "Aa || BB", version_ms=7)
    assert (built.tags_set, built.code_set) == (("Aa", "BB"), (2112,))


def test_a_condition_is_sent_as_it_is() -> None:
    built = subscription("T", sql92("a > 1 || b"), version_ms=7)
    assert built == SubscriptionData(
        topic="T", sub_string="a > 1 || b", expression_type="SQL92", sub_version=7
    )


@pytest.mark.parametrize(
    "expression", [sql92(""), Expression(None, "SQL92"), "||", "||||"], ids=["", "none", "||", "||||"]
)
def test_what_selects_nothing_at_all_is_an_error(expression: Expression | str) -> None:
    with pytest.raises(SubscriptionError):
        subscription("T", expression, version_ms=7)
