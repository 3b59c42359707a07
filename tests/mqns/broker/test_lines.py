"""What is printed or logged of events, whatever a name server sends."""

import logging

import pytest

from mqns.broker.events import BrokerEvent, Failed, MinBrokerIdChanged, OrderTopicsChanged, Registered
from mqns.broker.lines import LINES_MAX, PERIOD_S, EventLog, LineLimit, line, members
from mqns.errors import ResponseError
from rocketmq_remoting.codes import RequestCode

A, B = "127.0.0.1:9876", "127.0.0.2:9876"
NAMES = [f"T{number:06}" for number in range(100_000)]


def failure(address: str = A, code: RequestCode = RequestCode.REGISTER_BROKER, remark: str = "no") -> Failed:
    return Failed(address, code, ResponseError(address, 1, remark))


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        pytest.param(
            MinBrokerIdChanged(1, "x" * 200, None, "y" * 30_000),
            {
                "minBrokerId": 1,
                "minBrokerAddr": "x" * 200,
                "offlineBrokerAddr": None,
                "haBrokerAddr": "y" * 200 + "…",
            },
            id="an address",
        ),
        pytest.param(
            MinBrokerIdChanged(-(16**300)),
            {
                "minBrokerId": "-0x1" + "0" * 196 + "…",
                **dict.fromkeys(("minBrokerAddr", "offlineBrokerAddr", "haBrokerAddr")),
            },
            id="a number",
        ),
        pytest.param(
            failure(remark="R" * 900_000),
            {
                "address": A,
                "code": "REGISTER_BROKER",
                "error": f"{A} answered code 1: ".ljust(200, "R") + "…",
            },
            id="a remark",
        ),
        pytest.param(
            OrderTopicsChanged(frozenset(NAMES)),
            {"orderTopics": [*NAMES[:50], "… and 99950 more"]},
            id="topics that changed",
        ),
        pytest.param(
            Registered(A, None, None, ("x" * 300, *NAMES)),
            {
                "address": A,
                "masterAddr": None,
                "haServerAddr": None,
                "orderTopics": ("x" * 200 + "…", *NAMES[:49], "… and 99951 more"),
            },
            id="topics of a registration",
        ),
    ],
)
def test_what_a_name_server_sent_is_cut(event: BrokerEvent, shown: dict[str, object]) -> None:
    assert members(event) == shown
    assert line(event).startswith(type(event).__name__ + " ")
    assert len(line(event)) < 1000


def test_events_of_a_kind_have_so_many_lines_in_a_period() -> None:
    now = 0.0
    limit = LineLimit(lambda: now)
    pushes = [limit.admit(MinBrokerIdChanged(number % 2)) for number in range(LINES_MAX + 1000)]
    assert pushes == [0] * LINES_MAX + [None] * 1000
    others = (
        failure(),
        failure(B),
        failure(code=RequestCode.QUERY_DATA_VERSION),
        Registered(A),
        Registered(B),
    )
    assert [limit.admit(event) for event in others] == [0] * 5
    now = PERIOD_S
    assert [limit.admit(MinBrokerIdChanged(number)) for number in range(2)] == [1000, 0]
    assert limit.admit(failure()) == 0


def test_they_are_logged_likewise(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqns.broker")
    now = 0.0
    listener = EventLog(lambda: now)
    for _ in range(1000):
        listener(Registered(A, "x" * 30_000))
        listener(MinBrokerIdChanged(1, "x" * 30_000))
        listener(failure(remark="no"))
    assert len(caplog.records) == 2 * LINES_MAX
    assert max(len(record.getMessage()) for record in caplog.records) < 300
    now = PERIOD_S
    listener(failure(remark="no\nforged"))
    assert caplog.messages[-1] == (
        f"{A}: REGISTER_BROKER failed, retried while the agent runs: {A} answered code 1: no forged"
        " (and 980 more like it)"
    )
    assert caplog.records[-1].levelno == logging.WARNING
