"""The least rights of Redis's users: no more than what is called. That they are enough tests/conformance shows."""

import re

from registry.scripts import LUA
from registry.store.rights import COMMANDS, IN_SCRIPTS_AND_PLANS, QUEUE_RULES, pipeline_rules, store_rules

ROOT = LUA.parent
CALLED = re.compile(r'\b(?:p?call|overwrite|text_or_nil)\(\s*"([A-Z]+)"')
WHOLE = {"memory": "memory|usage"}


def test_every_right_is_needed_and_none_is_missing() -> None:
    files = [*LUA.rglob("*.lua"), *(path for part in ("registry", "access", "metrics", "worker", "api", "mqnamesrv")
                                    for path in (ROOT / part).rglob("*.py"))]  # fmt: skip
    called = {name.lower() for path in files for name in CALLED.findall(path.read_text())}
    assert {WHOLE.get(name, name) for name in called} == set(IN_SCRIPTS_AND_PLANS)
    assert len(COMMANDS) == len(set(COMMANDS))


def test_the_page_says_the_same() -> None:
    page = (ROOT / "docs" / "redis.md").read_text()
    assert f"ACL SETUSER namesrv on >PASSWORD {store_rules()}\n" in page
    assert f"ACL SETUSER namesrv-pipeline on >PASSWORD {pipeline_rules()}\n" in page
    assert f"ACL SETUSER namesrv-jobs on >PASSWORD {QUEUE_RULES}\n" in page
