"""UPDATE_NAMESRV_CONFIG and GET_NAMESRV_CONFIG (docs/conformance.md, CFG-01 to CFG-11)."""

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from testbed.scene import ORDER_TOPIC_CONFIG, Scene

BLACK = (16, "Can not update config in black list.")


def update(ns: Scene, text: str) -> Command:
    return ns.k1.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text.encode())


@pytest.mark.conformance("CFG-01", "CFG-02")
def test_the_configuration_is_listed_in_order(ns: Scene) -> None:
    answer = ns.ask(RequestCode.GET_NAMESRV_CONFIG)
    text = answer.body.decode()
    assert (answer.code, text[-1]) == (0, "\n")
    keys = [line.partition("=")[0] for line in text.splitlines()]
    assert keys == sorted(keys)
    assert {"listenPort", "kvConfigPath", "orderMessageEnable"} <= set(keys)


@pytest.mark.conformance("CFG-03")
def test_an_option_is_set_and_in_force_at_once(ns: Scene) -> None:
    ns.f1()
    ns.put_kv(ORDER_TOPIC_CONFIG, "TA", "broker-a:4")
    assert ns.route("TA").order_topic_conf is None
    with ns.settings(orderMessageEnable="true"):
        assert ns.config()["orderMessageEnable"] == "true"
        assert ns.route("TA").order_topic_conf == "broker-a:4"
    assert ns.route("TA").order_topic_conf is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("noSuchOption=1", id="unknown key", marks=pytest.mark.conformance("CFG-04")),
        pytest.param("listenPort=abc", id="no number", marks=pytest.mark.conformance("CFG-05")),
        pytest.param("", id="no body", marks=pytest.mark.conformance("CFG-06")),
    ],
)
def test_an_update_that_changes_nothing(ns: Scene, text: str) -> None:
    before = ns.config()
    assert update(ns, text).code == 0
    assert ns.config() == before


@pytest.mark.conformance("CFG-07")
def test_a_text_that_is_no_properties(ns: Scene) -> None:
    answer = update(ns, "a=\\u12")
    assert (answer.code, answer.remark) == (1, "string2Properties error")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kvConfigPath=/x", id="kvConfigPath", marks=pytest.mark.conformance("CFG-08")),
        *(
            pytest.param(f"{key}=x", id=key, marks=pytest.mark.conformance("CFG-09"))
            for key in ("rocketmqHome", "configStorePath", "configBlackList")
        ),
        pytest.param(
            "orderMessageEnable=true\nkvConfigPath=/x",
            id="among others",
            marks=pytest.mark.conformance("CFG-10"),
        ),
    ],
)
def test_what_may_not_be_set(ns: Scene, text: str) -> None:
    before = ns.config()
    answer = update(ns, text)
    assert (answer.code, answer.remark) == BLACK
    assert ns.config() == before


@pytest.mark.conformance("CFG-11")
@pytest.mark.server("options")
def test_what_else_may_not_be_set(ns: Scene) -> None:
    answer = update(ns, "listenPort=1")
    assert (answer.code, answer.remark) == BLACK
