"""What entries say of an access file and of rules (access.description, access.rules_in_force)."""

import json

from access.credentials import AclKey, AclSecret, CertificatePattern, TokenHash
from access.description import NAMES_MOST, Change, changed, described, digest
from access.limits import Limits
from access.patterns import Patterns
from access.principal import Principal
from access.roles import Role
from access.rules_in_force import RulesInForce
from registry.options.catalogue import Options
from registry.secret import Secret

READER = frozenset({Role.READER})


def principal(name: str = "p", secret: str = "secret-0123456789", **more: object) -> Principal:
    key = AclKey("K", (AclSecret("k", Secret(secret), 9.0),))
    given = {"keys": (key,), **more}
    return Principal(name, READER, **given)  # type: ignore[arg-type]


def test_each_fact_but_a_secret_counts() -> None:
    one = described([principal()])
    assert one == described([principal(secret="another-0123456789")])
    others = (
        {"keys": ()},
        {"keys": (AclKey("K", (AclSecret("k", Secret("x"), 10.0),)),)},
        {"limits": Limits(topics=Patterns.of(["a"]))},
        {"limits": Limits(limit_reads=True)},
        {"certificates": (CertificatePattern.of("dns:a"),)},
        {"tokens": (TokenHash("abcd1234", Secret("x"), 3.0),)},
    )
    digests = {digest(described([principal(**other)])) for other in others}
    assert len(digests | {digest(one), digest({})}) == len(others) + 2


def test_principals_that_were_added_changed_and_removed_are_named() -> None:
    before = described([principal("a"), principal("b"), principal("c")])
    after = described([principal("b", keys=()), principal("c"), principal("d")])
    assert changed(before, after) == Change(("d",), ("b",), ("a",), 3)
    assert changed(before, before) == Change()
    many = described(principal(f"p{number:03}") for number in range(NAMES_MOST + 1))
    change = changed({}, many)
    assert (len(change.added), change.count) == (NAMES_MOST, NAMES_MOST + 1)


def test_rules_say_what_is_other_than_before() -> None:
    before = RulesInForce.of(Options(access_read="open"), "one")
    after = RulesInForce.of(Options(access_read="signed"), "two", Change(added=("a",), count=1))
    assert before.state != after.state
    fields = dict(after.fields(before.state))
    assert json.loads(fields.pop("changes")) == {
        "accessRead": ["open", "signed"],
        "principals": ["one", "two"],
    }
    assert fields == {"added": '["a"]', "count": "1"}
    assert dict(before.fields("damaged"))["changes"].count("[null,") == len(before.rules)
