"""Readiness of the workers (docs/conformance.md, 19876)."""

import pytest

from rocketmq_remoting.codes import RequestCode
from testbed.scene import Scene


@pytest.mark.conformance("19876-01")
def test_workers_that_serve_are_ready(ns: Scene) -> None:
    reply = ns.k1.ask(RequestCode.CHECK_READINESS)
    assert (reply.code, reply.remark, reply.body) == (0, None, b"")
