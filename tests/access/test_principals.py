"""What proves that a caller is a principal: keys, tokens, certificates, while they are in force."""

from math import inf

import pytest

from access.certificates import CertificateNames
from access.classes import ALL, AccessClass
from access.credentials import AclKey, AclSecret, CertificatePattern, TokenHash
from access.first_ends import FirstEnds
from access.limits import UNLIMITED, Limits
from access.named import ALL_NAMES, NOTHING, Named
from access.patterns import Patterns
from access.principal import Principal, StoredToken
from access.principals import DuplicateCredential, Principals
from access.proof import AmbiguousCertificate, BadCredential, ExpiredCredential, Proof
from access.roles import Role
from access.tokens import new_token
from registry.secret import Secret
from rocketmq_remoting.acl_signature import ACCESS_KEY, SIGNATURE, signature
from tests.access.files import OTHER, SECRET

NOW = 1_800_000_000.0
READER = frozenset({Role.READER})
TOKEN = new_token()


def signed(access_key: str = "K", secret: str = SECRET, body: bytes = b"") -> dict[str, str]:
    fields = {"topic": "T", ACCESS_KEY: access_key}
    return fields | {SIGNATURE: signature(fields, body, secret)}


def key(*secrets: AclSecret, access_key: str = "K") -> AclKey:
    return AclKey(access_key, secrets or (AclSecret("a.key", Secret(SECRET)),))


def one(*keys: AclKey, name: str = "p", roles: frozenset[Role] = READER) -> Principal:
    return Principal(name, roles, keys=keys)


def certified(name: str, *patterns: str) -> Principal:
    return Principal(name, READER, certificates=tuple(map(CertificatePattern.of, patterns)))


def names(
    *, uris: tuple[str, ...] = (), dns: tuple[str, ...] = (), cn: str | None = None
) -> CertificateNames:
    return CertificateNames(NOW + 60, uris, dns, cn)


def test_a_signature_proves_its_principal() -> None:
    principal = one(key())
    proof = Principals([principal]).by_signature(signed(body=b"body"), b"body", NOW)
    assert proof == Proof("acl", principal, "acl:K#a.key")
    assert proof.actor == "acl:p"


@pytest.mark.parametrize("fields", [{}, {"topic": "T"}, {ACCESS_KEY: ""}, signed("other"), signed("")])
def test_an_unknown_key_is_anonymous(fields: dict[str, str]) -> None:
    """The C++ client signs with an empty key, and clients with keys of their brokers."""
    assert Principals([one(key())]).by_signature(fields, b"", NOW) is None


@pytest.mark.parametrize("fields", [signed(secret=OTHER), {ACCESS_KEY: "K"}, signed() | {"topic": "other"}])
def test_a_known_key_with_another_signature_is_bad(fields: dict[str, str]) -> None:
    with pytest.raises(BadCredential, match="acl:K of principal p"):
        Principals([one(key())]).by_signature(fields, b"", NOW)


def test_of_two_secrets_each_is_good_until_its_end() -> None:
    """AC-21, AC-25."""
    old, new = AclSecret("a.key", Secret(SECRET), NOW + 2), AclSecret("b.key", Secret(OTHER))
    principals = Principals([one(key(old, new))])
    proof = principals.by_signature(signed(), b"", NOW)
    assert (proof and proof.credential, proof and proof.expires) == ("acl:K#a.key", NOW + 2)
    proof = principals.by_signature(signed(secret=OTHER), b"", NOW + 2)
    assert (proof and proof.credential, proof and proof.expires) == ("acl:K#b.key", None)
    with pytest.raises(ExpiredCredential, match=r"acl:K#a\.key of principal p is over"):
        principals.by_signature(signed(), b"", NOW + 2)
    with pytest.raises(BadCredential) as wrong:
        principals.by_signature(signed(secret="neither"), b"", NOW + 2)
    assert wrong.value.result == "denied"


def test_a_token_proves_its_principal() -> None:
    principal = Principal("p", READER, tokens=(TokenHash(TOKEN.id, TOKEN.digest, NOW + 2),))
    principals = Principals([principal])
    proof = principals.by_token(TOKEN.token.reveal(), NOW)
    assert proof == Proof("token", principal, f"token:{TOKEN.id}", NOW + 2)
    with pytest.raises(ExpiredCredential, match="is over"):
        principals.by_token(TOKEN.token.reveal(), NOW + 2)


def test_another_token_of_a_known_id_is_bad_and_one_of_an_unknown_id_is_unknown() -> None:
    principals = Principals([Principal("p", READER, tokens=(TokenHash(TOKEN.id, TOKEN.digest),))])
    other = new_token().token.reveal()
    assert principals.by_token(other, NOW) is None
    assert principals.by_token("", NOW) is None
    with pytest.raises(BadCredential):
        principals.by_token(f"mqns_{TOKEN.id}{other[13:]}", NOW)


def test_no_error_has_a_secret() -> None:
    principals = Principals(
        [Principal("p", READER, keys=(key(),), tokens=(TokenHash(TOKEN.id, TOKEN.digest, NOW),))]
    )
    with pytest.raises(BadCredential) as bad_key:
        principals.by_signature(signed(secret=OTHER), b"", NOW)
    with pytest.raises(BadCredential) as bad_token:
        principals.by_token(TOKEN.token.reveal(), NOW)
    text = f"{bad_key.value!r} {bad_token.value!r}"
    for secret in (SECRET, OTHER, TOKEN.token.reveal(), TOKEN.digest.reveal()):
        assert secret not in text


@pytest.mark.parametrize(
    ("shown", "principal"),
    [
        (names(uris=("spiffe://td/ns/a/broker",)), "by-uri"),
        (names(uris=("spiffe://td/ns/a/b/broker",)), None),
        (names(dns=("broker-0.ns.svc",)), "by-dns"),
        (names(dns=("x", "broker-0.ns.svc")), "by-dns"),
        (names(dns=("broker-0.a.ns.svc",)), None),
        (names(cn="tools"), "by-cn"),
        (names(uris=("spiffe://td/ns/a/broker",), dns=("broker-0.ns.svc",)), "by-uri"),
        (names(uris=("spiffe://other",), dns=("broker-0.ns.svc",)), "by-dns"),
        (names(uris=("tools",)), None),
        (names(), None),
    ],
)
def test_a_certificate_is_known_by_its_uris_then_by_its_dns_names(
    shown: CertificateNames, principal: str | None
) -> None:
    """AC-16."""
    principals = Principals(
        [
            certified("by-uri", "uri:spiffe://td/ns/*/broker"),
            certified("by-dns", "dns:Broker-*.ns.svc"),
            certified("by-cn", "cn:tools"),
        ]
    )
    proof = principals.by_certificate(shown, NOW)
    assert (proof and proof.principal.name) == principal
    assert proof is None or (proof.kind, proof.expires) == ("mtls", NOW + 60)


def test_a_certificate_of_two_principals_is_refused() -> None:
    """AC-16; the text names both."""
    principals = Principals(
        [certified("a", "dns:b-*"), certified("b", "dns:*-1", "dns:b-2"), certified("c", "dns:c")]
    )
    for shown in (("b-1",), ("b-9", "c")):
        with pytest.raises(
            AmbiguousCertificate, match=r"dns:\S+ of principal a and dns:\S+ of principal [bc]"
        ):
            principals.by_certificate(names(dns=shown), NOW)
    proof = Principals([certified("b", "dns:*-1", "dns:b-*")]).by_certificate(names(dns=("b-1",)), NOW)
    assert proof is not None


def test_a_certificate_that_is_over_is_bad() -> None:
    with pytest.raises(ExpiredCredential, match="certificate of principal a is over"):
        Principals([certified("a", "cn:x")]).by_certificate(CertificateNames(NOW, cn="x"), NOW)


@pytest.mark.parametrize("text", ["", "x", "uri:", "URI:x", "ip:127.0.0.1"])
def test_what_is_no_certificate_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="begins with uri:, dns: or cn:"):
        CertificatePattern.of(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (one(key(), name="a"), one(key(), name="b")),
        (
            Principal("a", READER, tokens=(TokenHash("abcd1234", Secret("1")),)),
            Principal("b", READER, tokens=(TokenHash("abcd1234", Secret("2")),)),
        ),
        (certified("a", "dns:b-*"), certified("b", "dns:B-*")),
    ],
    ids=["key", "token", "certificate"],
)
def test_two_principals_with_one_credential_are_an_error(one: Principal, other: Principal) -> None:
    with pytest.raises(DuplicateCredential, match="of principal a and b more than once"):
        Principals([one, other])


def test_one_principal_has_a_credential_once() -> None:
    with pytest.raises(DuplicateCredential, match="of principal p more than once"):
        Principals([one(key(), key())])


@pytest.mark.parametrize("revoked", ["principal:p", "acl:K"])
def test_what_is_revoked_is_bad_until_it_is_not(revoked: str) -> None:
    """AC-22: it stays known."""
    principals = Principals([one(key())])
    fewer = principals.without([revoked, "acl:other"])
    with pytest.raises(BadCredential, match="acl:K of principal p is revoked"):
        fewer.by_signature(signed(), b"", NOW)
    assert principals.by_signature(signed(), b"", NOW)
    assert fewer.without(()).by_signature(signed(), b"", NOW)


@pytest.mark.parametrize(
    "revoked", ["principal:p", f"token:{TOKEN.id}", "dns:b-*"], ids=["all", "token", "certificate"]
)
def test_tokens_and_certificates_are_revoked(revoked: str) -> None:
    tokens = (TokenHash(TOKEN.id, TOKEN.digest),)
    principal = Principal("p", READER, certificates=(CertificatePattern.of("dns:b-*"),), tokens=tokens)
    principals = Principals([principal]).without({revoked})
    if revoked != "dns:b-*":
        with pytest.raises(BadCredential, match="revoked"):
            principals.by_token(TOKEN.token.reveal(), NOW)
    if not revoked.startswith("token"):
        with pytest.raises(BadCredential, match="revoked"):
            principals.by_certificate(names(dns=("b-1",)), NOW)


def test_the_next_expiry_is_behind_now() -> None:
    secrets = (AclSecret("a", Secret(SECRET), NOW + 3), AclSecret("b", Secret(OTHER), NOW - 1))
    tokens = (TokenHash("abcd1234", Secret(""), NOW + 1), TokenHash("abcd1235", Secret("")))
    principals = Principals([Principal("p", READER, keys=(key(*secrets),), tokens=tokens)])
    assert principals.next_expiry(NOW) == NOW + 1
    assert principals.next_expiry(NOW, "acl") == NOW + 3
    assert principals.next_expiry(NOW + 1) == NOW + 3
    assert principals.next_expiry(NOW + 3) is None


def test_stored_tokens_have_the_limits_of_their_principal() -> None:
    limits = Limits(brokers=Patterns.of(["b-*"]))
    principals = Principals([Principal("p", READER, limits)])
    with_roles = StoredToken("p", TokenHash(TOKEN.id, TOKEN.digest), frozenset({Role.SCRAPER}))
    proof = principals.with_tokens([with_roles]).by_token(TOKEN.token.reveal(), NOW)
    assert proof is not None
    assert (proof.principal.classes, proof.principal.limits) == (AccessClass.METRICS, limits)
    proof = principals.with_tokens([StoredToken("p", with_roles.token)]).by_token(TOKEN.token.reveal(), NOW)
    assert proof is not None
    assert (proof.principal.classes, proof.principal.limits) == (AccessClass.READ, limits)
    assert principals.by_token(TOKEN.token.reveal(), NOW) is None


def test_a_stored_token_of_an_unknown_principal_needs_roles_of_its_own() -> None:
    token, text = TokenHash(TOKEN.id, TOKEN.digest, NOW + 5), TOKEN.token.reveal()
    assert Principals().with_tokens([StoredToken("new", token)]).by_token(text, NOW) is None
    principals = Principals().with_tokens([StoredToken("new", token, READER)])
    proof = principals.by_token(text, NOW)
    assert proof is not None
    assert (proof.actor, proof.principal.limits) == ("token:new", UNLIMITED)
    assert principals.next_expiry(NOW, "token") == NOW + 5


def test_a_stored_token_does_not_replace_one_of_a_principal() -> None:
    own = Principal("p", READER, tokens=(TokenHash(TOKEN.id, TOKEN.digest),))
    stolen = StoredToken("q", TokenHash(TOKEN.id, new_token().digest), frozenset({Role.ADMIN}))
    proof = Principals([own]).with_tokens([stolen]).by_token(TOKEN.token.reveal(), NOW)
    assert proof is not None
    assert proof.principal is own


@pytest.mark.parametrize(
    ("roles", "classes"),
    [
        ({Role.READER}, AccessClass.READ),
        ({Role.BROKER}, AccessClass.READ | AccessClass.BROKER),
        ({Role.OPERATOR}, AccessClass.READ | AccessClass.ADMIN | AccessClass.AUDIT),
        ({Role.ADMIN}, ALL),
        ({Role.READER, Role.SCRAPER}, AccessClass.READ | AccessClass.METRICS),
    ],
)
def test_classes_of_roles(roles: set[Role], classes: AccessClass) -> None:
    """AC-14: a reader's key deletes no topic."""
    assert Principal("p", frozenset(roles)).classes == classes
    assert bool(classes & AccessClass.ADMIN) == (not roles.isdisjoint({Role.OPERATOR, Role.ADMIN}))


@pytest.mark.parametrize(
    ("named", "allowed"),
    [
        (Named(brokers=("b-1",), topics=("o-1", "o-2")), True),
        (Named(brokers=("c-1",)), False),
        (Named(brokers=("b-1",), topics=("o-1", "x")), False),
        (Named(clusters=("any",), kv=None), True),
        (Named(topics=None), False),
        (NOTHING, True),
        (ALL_NAMES, False),
    ],
)
def test_limits_have_all_that_a_request_names(named: Named, allowed: bool) -> None:
    """AC-17, of values."""
    assert Limits(brokers=Patterns.of(["b-*"]), topics=Patterns.of(["o-*"])).allow(named) == allowed
    assert UNLIMITED.allow(named)


def test_a_key_ends_with_the_last_of_its_secrets_and_what_is_over_or_revoked_ends_no_more() -> None:
    old, new = AclSecret("a.key", Secret(SECRET), NOW + 2), AclSecret("b.key", Secret(OTHER), NOW + 5)
    without_end = key(old, AclSecret("c.key", Secret(OTHER)), access_key="L")
    token = TokenHash(TOKEN.id, TOKEN.digest, NOW + 3)
    principals = Principals([Principal("p", READER, keys=(key(old, new), without_end), tokens=(token,))])
    assert principals.first_ends(NOW) == {"acl": NOW + 5, "token": NOW + 3}
    assert principals.first_ends(NOW + 3) == {"acl": NOW + 5, "token": None}
    assert principals.without({"acl:K"}).first_ends(NOW) == {"acl": None, "token": NOW + 3}
    assert principals.without({"principal:p"}).first_ends(NOW) == {"acl": None, "token": None}


def test_first_ends_are_infinite_once_there_are_none_and_absent_before() -> None:
    ends = FirstEnds()
    assert dict(ends.read(Principals(), NOW)) == {}
    ending = Principals([one(key(AclSecret("a.key", Secret(SECRET), NOW + 2)))])
    assert dict(ends.read(ending, NOW)) == {"key": NOW + 2}
    assert dict(ends.read(ending, NOW + 2, NOW + 9)) == {"key": inf, "cert": NOW + 9}
    assert dict(ends.read(Principals(), NOW)) == {"key": inf, "cert": inf}
