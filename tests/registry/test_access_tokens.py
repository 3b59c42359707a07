"""Bearer tokens and revocations in the store: what is written, what the stream has of it, and that no hash is shown."""

import json
from hashlib import sha256
from typing import Any

import pytest

from access.principal import StoredToken
from access.roles import Role
from registry.access_changes import DAY_MS
from registry.access_tokens import (
    OVER_KEPT_MS,
    REVOKED_MOST,
    SINCE,
    TOKENS_MOST,
    VALID_MOST_MS,
    VALID_MS,
    Grant,
    Token,
    create,
    read,
    read_all,
    restore,
    revoke,
    revoked,
    rotate,
)
from registry.errors import InvalidField, TableFull
from registry.events.entry import Event
from registry.plans import Plan, ScriptCall
from registry.secret import Secret
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

ACTOR = "wire:127.0.0.1:4711"


def grant(token_id: str = "abcd1234", principal: str = "ci", **more: Any) -> Grant:
    return Grant(token_id, Secret(sha256(token_id.encode()).hexdigest()), principal, **more)


def created(ns: Namespace, token_id: str = "abcd1234", **more: Any) -> Token:
    return ns.run(create(ns.keys, grant(token_id, **more), origin()))


def only(ns: Namespace) -> Event:
    (event,) = [event for event in ns.new_entries() if event.kind == "access_changed"]
    assert event.is_audited
    return event


def said(event: Event) -> dict[str, str]:
    return {
        name: event.get(name)
        for name in ("cause", "principal", "credential", "roles", "expires_ms", "replaces")
        if name in event.fields
    }


def test_a_token_is_stored_and_read(ns: Namespace) -> None:
    token = created(ns, roles=("scraper",))
    assert ns.run(read(ns.keys)) == (token,)
    assert token.expires_ms - token.created_ms == VALID_MS
    assert abs(token.created_ms - ns.now_ms()) < 5000
    assert (token.principal, token.roles, token.by) == ("ci", ("scraper",), ACTOR)
    assert said(only(ns)) == {
        "cause": "created",
        "principal": "ci",
        "credential": "token:abcd1234",
        "roles": '["scraper"]',
        "expires_ms": str(token.expires_ms),
    }


def test_its_hash_is_in_its_record_only(ns: Namespace) -> None:
    """AC-28, of the stream."""
    token = created(ns)
    ns.run(rotate(ns.keys, token.id, grant("b"), 0, origin()))
    ns.run(revoke(ns.keys, "token:b", "ci", origin()))
    digest = token.digest.reveal()
    assert json.loads(ns.store.hget(ns.keys.access_tokens, token.id) or "")["hash"] == digest
    entries = str([event.fields for event in ns.new_entries()])
    for shown in (f"{token} {grant()}", entries, str(ns.store.hgetall(ns.keys.access_revoked))):
        assert digest not in shown


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"principal": "a b"}, "principal"),
        ({"principal": ""}, "principal"),
        ({"valid_ms": 0}, "validMillis"),
        ({"valid_ms": VALID_MOST_MS + 1}, "validMillis"),
    ],
)
def test_what_cannot_be_a_token_is_refused(ns: Namespace, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField, match=field):
        created(ns, **given)
    assert ns.store.keys("*") == []


def test_an_id_is_given_once(ns: Namespace) -> None:
    token = created(ns)
    with pytest.raises(InvalidField, match="there is a token abcd1234"):
        created(ns, principal="other")
    with pytest.raises(InvalidField, match="there is a token abcd1234"):
        ns.run(rotate(ns.keys, token.id, grant(), 0, origin()))
    assert ns.run(read(ns.keys)) == (token,)


def test_tokens_are_bounded_and_old_ones_give_place(ns: Namespace) -> None:
    full = {f"t{number}": "damaged" for number in range(TOKENS_MOST - 1)}
    old: dict[str, Any] = {
        "hash": "0" * 64,
        "principal": "p",
        "created_ms": 0,
        "expires_ms": ns.now_ms() - OVER_KEPT_MS + 60_000,
    }
    ns.store.hset(ns.keys.access_tokens, mapping=full | {"old": json.dumps(old)})
    with pytest.raises(
        TableFull, match=r"^a token of .*: there are 1000 tokens, the most there may be; revoke some$"
    ):
        created(ns)
    old["expires_ms"] -= 60_001
    ns.store.hset(ns.keys.access_tokens, "old", json.dumps(old))
    token = created(ns)
    assert ns.run(read(ns.keys)) == (token,)
    assert ns.store.hlen(ns.keys.access_tokens) == TOKENS_MOST


def test_a_rotated_token_and_its_successor_are_both_good_for_a_while(ns: Namespace) -> None:
    old = created(ns, roles=("reader",))
    ns.new_entries()
    new = ns.run(rotate(ns.keys, old.id, grant("b", principal="ignored"), DAY_MS, origin()))
    assert new is not None
    assert (new.principal, new.roles) == ("ci", ("reader",))
    ends, _ = ns.run(read(ns.keys))
    assert ends.id == old.id
    assert abs(ends.expires_ms - ns.now_ms() - DAY_MS) < 5000
    assert ends.digest == old.digest
    event = only(ns)
    assert (event.cause, event.get("credential"), event.get("replaces")) == (
        "rotated",
        "token:b",
        "token:abcd1234",
    )
    longer = ns.run(rotate(ns.keys, old.id, grant("c"), 2 * DAY_MS, origin()))
    assert longer is not None
    assert ns.run(read(ns.keys))[0] == ends  # it does not live longer by that
    assert ns.run(rotate(ns.keys, "absent", grant("d"), 0, origin())) is None


def test_a_successor_is_good_for_as_long_as_the_first_token_was_made_for(ns: Namespace) -> None:
    old = created(ns, valid_ms=DAY_MS)
    new, asked, last = (
        ns.run(rotate(ns.keys, of, grant(id, valid_ms=valid_ms), 0, origin()))
        for of, id, valid_ms in ((old.id, "b", None), (old.id, "c", 2 * DAY_MS), ("c", "d", None))
    )
    assert new is not None
    assert asked is not None
    assert last is not None
    lives = [one.expires_ms - one.created_ms for one in (new, asked, last)]
    assert lives == [DAY_MS, 2 * DAY_MS, 2 * DAY_MS]
    again = ns.run(rotate(ns.keys, old.id, grant("e", valid_ms=None), 0, origin()))
    assert again is not None, "its successor was lost"
    assert again.expires_ms - again.created_ms == DAY_MS, "not the rest that was left to the old one"


def test_a_revoked_token_is_gone(ns: Namespace) -> None:
    created(ns)
    ns.new_entries()
    assert ns.run(revoke(ns.keys, "token:abcd1234", "ci", origin()))
    assert said(only(ns)) == {"cause": "revoked", "principal": "ci", "credential": "token:abcd1234"}
    assert ns.run(read(ns.keys)) == ()
    assert ns.run(revoked(ns.keys)) == frozenset()


@pytest.mark.parametrize("credential", ["acl:K", "token:ofafile0", "principal:p", "uri:spiffe://td/*"])
def test_what_the_access_file_has_is_noted_as_revoked_until_it_is_restored(
    ns: Namespace, credential: str
) -> None:
    event_id = ns.run(revoke(ns.keys, credential, "p", origin()))
    assert str(only(ns).id) == event_id
    assert ns.run(revoked(ns.keys)) == {credential}
    assert json.loads(ns.store.hget(ns.keys.access_revoked, credential) or "")["by"] == ACTOR
    assert ns.run(revoke(ns.keys, credential, "p", origin())) == ""
    assert ns.run(restore(ns.keys, credential, "p", origin()))
    assert said(only(ns)) == {"cause": "restored", "principal": "p", "credential": credential}
    assert ns.run(revoked(ns.keys)) == frozenset()
    assert ns.run(restore(ns.keys, credential, "p", origin())) == ""
    assert ns.new_entries() == []


def test_since_when_there_are_revocations_outlives_them_and_is_none(ns: Namespace) -> None:
    first = ns.run(revoke(ns.keys, "acl:K", "p", origin()))
    ns.run(revoke(ns.keys, "acl:L", "p", origin()))
    assert ns.run(read_all(ns.keys))[1:3] == (frozenset({"acl:K", "acl:L"}), first)
    for credential in ("acl:K", "acl:L", SINCE):
        ns.run(restore(ns.keys, credential, "p", origin()))
    assert ns.run(read_all(ns.keys))[1:3] == (frozenset(), first)
    assert ns.run(revoked(ns.keys)) == frozenset()
    ns.store.delete(ns.keys.access_revoked)
    assert ns.run(read_all(ns.keys))[2] == ""


def test_revocations_are_bounded(ns: Namespace) -> None:
    ns.store.hset(ns.keys.access_revoked, mapping={str(number): "{}" for number in range(REVOKED_MOST)})
    with pytest.raises(TableFull, match=r"^the revocation of acl:K: there are 10000 revocations, the most"):
        ns.run(revoke(ns.keys, "acl:K", "p", origin()))
    for wrong in ("", "x" * 513, "acl:\ud800"):
        with pytest.raises(InvalidField, match="credential"):
            ns.run(revoke(ns.keys, wrong, "p", origin()))
    for operation in (revoke, restore):
        with pytest.raises(InvalidField, match="principal"):
            ns.run(operation(ns.keys, "acl:K", "a b", origin()))


def test_what_another_hand_wrote_beyond_the_bounds_can_be_taken_back(ns: Namespace) -> None:
    many = {f"acl:{number}": "{}" for number in range(REVOKED_MOST + 2)}
    ns.store.hset(ns.keys.access_revoked, mapping=many)
    assert ns.run(restore(ns.keys, "acl:0", "p", origin()))


@pytest.mark.parametrize(
    "operation",
    [
        lambda ns: create(ns.keys, grant("b"), origin()),
        lambda ns: rotate(ns.keys, "abcd1234", grant("b"), 0, origin()),
        lambda ns: revoke(ns.keys, "token:abcd1234", "ci", origin()),
        lambda ns: restore(ns.keys, "acl:K", "ci", origin()),
    ],
    ids=["create", "rotate", "revoke", "restore"],
)
def test_another_writer_in_between_is_seen(ns: Namespace, operation: Any) -> None:
    """Each reads, decides, and writes only what is as it read it; else it begins from the start."""
    created(ns)
    ns.run(revoke(ns.keys, "acl:K", "ci", origin()))
    scripts = 0

    def disturbed(plan: Plan[Any]) -> Plan[Any]:
        nonlocal scripts
        request = next(plan)
        try:
            while True:
                if isinstance(request, ScriptCall):
                    scripts += 1
                    if scripts == 1:
                        ns.store.hdel(ns.keys.access_tokens, "abcd1234")
                        ns.store.hset(
                            ns.keys.access_tokens, "b", ns.store.hget(ns.keys.access_tokens, "b") or "x"
                        )
                        ns.store.hdel(ns.keys.access_revoked, "acl:K")
                request = plan.send((yield request))
        except StopIteration as end:
            return end.value

    try:
        outcome = ns.run(disturbed(operation(ns)))
    except InvalidField as error:
        outcome = error.field
    assert outcome in (None, "", "id") or ns.run(revoked(ns.keys)) == {"token:abcd1234"}
    assert ns.store.hget(ns.keys.access_tokens, "b") == "x"


def record(**changes: object) -> str:
    """Return a token as it is stored, but for these members."""
    sound = {"hash": "0" * 64, "principal": "p", "created_ms": 0, "expires_ms": 1}
    return json.dumps(sound | changes)


OUT_OF_BOUNDS: list[tuple[str, object]] = [
    *(("expires_ms", wrong) for wrong in (10**400, 2**63 - 1, -1)),
    ("created_ms", 10**30),
    *(("hash", wrong) for wrong in ("ä" * 64, "", "0" * 64 + "\n")),
    *(("principal", wrong) for wrong in ("a\nb", "p" * 65)),
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        "[1]",
        '{"hash":1}',
        "[" * 5000,
        "\ud800",
        *(record(**{name: wrong}) for name, wrong in OUT_OF_BOUNDS),
    ],
)
def test_a_damaged_record_is_left_out(ns: Namespace, text: str) -> None:
    token = created(ns)
    ns.store.hset(ns.keys.access_tokens, "damaged", text.encode(errors="surrogatepass"))
    assert ns.run(read(ns.keys)) == (token,)
    assert ns.run(rotate(ns.keys, "damaged", grant("b"), 0, origin())) is None
    assert ns.run(revoke(ns.keys, "token:damaged", "ci", origin()))


def test_a_stored_token_as_the_lookup_of_principals_takes_it(ns: Namespace) -> None:
    token = created(ns, roles=("reader",))
    stored = StoredToken.of(token)
    assert stored is not None
    assert (stored.principal, stored.roles) == ("ci", frozenset({Role.READER}))
    assert (stored.token.id, stored.token.expires) == ("token:abcd1234", token.expires_ms / 1000)
    assert StoredToken.of(created(ns, "b", roles=("of a later release",))) is None
