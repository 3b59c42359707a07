"""The file of the principals: what it says, what is wrong with it, and that no error has a secret."""

import os
from datetime import UTC, datetime
from pathlib import Path
from traceback import format_exception

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access.access_file import InvalidAccessFile, load
from access.credentials import AclKey, AclSecret, CertificatePattern, TokenHash
from access.limits import Limits
from access.patterns import Patterns
from access.principal import Principal
from access.roles import Role
from access.tokens import digest_of
from registry.secret import Secret
from tests.access.files import OTHER, SECRET, TOKEN, access_file, write

HASH = "0" * 64
WHOLE = f"""
[principals.mqadmin]
roles = ["operator"]
limits = {{ brokers = ["b-*"], kv = [], limitReads = true }}
certificates = ["uri:spiffe://td/ns/*/broker", "cn:tools"]

[[principals.mqadmin.keys]]
accessKey = "mqadmin"
secrets = [
    {{ file = "a.key", expires = 2027-01-01T00:00:00Z }},
    {{ file = "b.key" }},
]

[principals."ci.1_a-B"]
roles = ["scraper", "reader"]
tokens = [{{ file = "a.token" }}, {{ id = "zzzz0000", hash = "sha256:{HASH}", expires = 2027-01-01T02:00:00+02:00 }}]
"""
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
KEY = '[[principals.p.keys]]\naccessKey = "K"\n'
ONE = f'[principals.p]\nroles = ["reader"]\n{KEY}secrets = [{{ file = "a.key" }}]\n'


def test_a_whole_file(tmp_path: Path) -> None:
    loaded = load(access_file(tmp_path, WHOLE))
    assert loaded.warnings == ()
    secrets = (AclSecret("a.key", Secret(SECRET), NEW_YEAR), AclSecret("b.key", Secret(OTHER)))
    assert list(loaded.principals) == [
        Principal(
            "mqadmin",
            frozenset({Role.OPERATOR}),
            Limits(brokers=Patterns.of(["b-*"]), kv=Patterns.of([]), limit_reads=True),
            (AclKey("mqadmin", secrets),),
            (CertificatePattern.of("uri:spiffe://td/ns/*/broker"), CertificatePattern.of("cn:tools")),
        ),
        Principal(
            "ci.1_a-B",
            frozenset({Role.SCRAPER, Role.READER}),
            tokens=(TokenHash("abcd1234", digest_of(TOKEN)), TokenHash("zzzz0000", Secret(HASH), NEW_YEAR)),
        ),
    ]


def test_the_example_of_the_page_is_a_right_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/access.md").read_text()
    path = access_file(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    for name in ("mqadmin.key", "mqadmin.key.new"):
        write(tmp_path / name, SECRET)
    write(tmp_path / "prometheus.token", TOKEN)
    assert [principal.name for principal in load(path).principals] == ["mqadmin", "brokers", "prometheus"]


WRONG = [
    pytest.param("", "principals: is no table", id="nothing"),
    pytest.param("principals = 1", "principals: is no table", id="no tables"),
    pytest.param("[principals", "TOML: Expected ']'", id="no TOML"),
    pytest.param(f"{ONE}{ONE}", "TOML: Cannot declare", id="a principal twice"),
    pytest.param("[principal.p]", "'principal': is unknown", id="unknown table"),
    pytest.param("x = " + "[" * 100_000, "TOML: is nested too deep", id="deep"),
    pytest.param("x = " + "9" * 10_000, "TOML: has a number or time that is too long", id="a long number"),
    pytest.param("a." * 5_000 + "b = 1", "TOML: has over 32 words with dots", id="a long key"),
    pytest.param('[principals."a b"]', "principal 'a b': a name has 1 to 64", id="a bad name"),
    pytest.param('[principals.""]', "principal '': a name", id="an empty name"),
    pytest.param(f"[principals.{'a' * 65}]", "a name has 1 to 64", id="a long name"),
    pytest.param("principals.p = 1", "principal p: is no table; there is [principals.p]", id="no principal"),
    pytest.param("[principals.p]", "principal p: roles: is required", id="no roles"),
    pytest.param(f"{ONE}\n{KEY}", "principal p: keys[1].secrets: is required", id="no secrets"),
    pytest.param("[principals.p]\nroles=[]", "principal p: roles: Expected `array` of length", id="no role"),
    pytest.param(
        '[principals.p]\nroles=["root"]',
        "roles[0]: Invalid enum value 'root'; it is one of reader, broker, operator, admin, scraper",
        id="a role",
    ),
    pytest.param(
        '[principals.p]\nroles="admin"', "roles: Expected `array`, got `str`; it is a list", id="a text"
    ),
    pytest.param(
        f'{ONE}secret="x"',
        "principal p: keys[0].secret: is unknown; there are accessKey, secrets",
        id="field",
    ),
    pytest.param(
        '[principals.p]\n"x` - at `$.y"=1',
        "y.x: is unknown; there are roles",
        id="a field like a place of msgspec",
    ),
    pytest.param(f'{ONE}"a\\nb"="x"', "keys[0].a?b: is unknown; there are", id="a line break in a field"),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ncertificates=["cn:a\\nb", "cn:a\\nb"]',
        "cn:a?b is of principal p more than once",
        id="a line break in a pattern",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\nlimits={broker=["x"]}',
        "principal p: limits.broker: is unknown; there are clusters, brokers, topics, kv, limitReads",
        id="a limit",
    ),
    pytest.param(
        '[principals.p]\nrole=["reader"]',
        "principal p: role: is unknown; there are roles, limits, keys, certificates, tokens",
        id="a member",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ntokens=[{file="a.token"}, {path="b"}]',
        "principal p: tokens[1].path: is unknown; there are file, id, hash, expires",
        id="a member of a token",
    ),
    pytest.param(
        ONE.replace('"a.key"', '"a.key", expire = 2027-01-01T00:00:00Z'),
        "principal p: keys[0].secrets[0].expire: is unknown; there are file, expires",
        id="a member of a secret",
    ),
    pytest.param(
        ONE.replace('"a.key"', "1"),
        "principal p: keys[0].secrets[0].file: Expected `str`, got `int`",
        id="type",
    ),
    pytest.param(
        f'{ONE}\n{KEY}secrets=[{{file="b.key"}}]', "acl:K is of principal p more than once", id="a key twice"
    ),
    pytest.param(
        f"{ONE}{ONE.replace('.p', '.q')}",
        "acl:K is of principal p and q more than once",
        id="in two principals",
    ),
    pytest.param(
        ONE.replace('[{ file = "a.key" }]', "[]"),
        "principal p: keys[0].secrets: Expected `array`",
        id="no secret",
    ),
    pytest.param(
        ONE.replace("}]", '}, { file="b.key" }, { file="b.key" }]'),
        "keys[0].secrets: Expected",
        id="three secrets",
    ),
    pytest.param(ONE.replace('"K"', '"K\\n"'), "keys[0].accessKey: has characters", id="access key"),
    pytest.param(
        ONE.replace('"a.key"', '"a.key", expires = 2027-01-01T00:00:00'),
        "with a timezone component; it is a time with its offset to UTC, as 2027-01-01T00:00:00Z",
        id="a time without zone",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ncertificates=["x"]',
        "principal p: certificates[0]: 'x': a pattern begins with uri:, dns: or cn:",
        id="a pattern",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ncertificates=["dns:bröker"]',
        "principal p: certificates[0]: 'dns:bröker': URIs and DNS names are ASCII",
        id="a pattern that no name matches",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ntokens=[{}]',
        "tokens[0]: has either file, or id and hash",
        id="token",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ntokens=[{file="a.token", id="abcd1234"}]',
        "tokens[0]: has either file, or id and hash",
        id="a token of both",
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ntokens=[{file="a.key"}]', "'a.key' has no token", id="no token"
    ),
    pytest.param(
        '[principals.p]\nroles=["reader"]\ntokens=[{id="abcd1234", hash="0"}]',
        "tokens[0].hash: Expected `str` matching regex",
        id="a hash",
    ),
]


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_an_error_names_file_principal_and_field(tmp_path: Path, text: str, reason: str) -> None:
    path = access_file(tmp_path, text)
    with pytest.raises(InvalidAccessFile) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert reason in str(raised.value)
    assert str(raised.value).isprintable()
    _shows_nothing(raised.value)


@pytest.mark.parametrize(
    "roles", [["reader", "admin"], ["broker", "operator"], ["scraper", "reader", "operator"]]
)
def test_a_key_of_clients_has_no_role_of_operators(tmp_path: Path, roles: list[str]) -> None:
    """Rule 5, AC-29: a signed lookup of a topic is a valid request to delete it."""
    mixed = ONE.replace('["reader"]', str(roles).replace("'", '"'))
    with pytest.raises(
        InvalidAccessFile, match="principal p: roles: with an ACL key there is reader or broker"
    ):
        load(access_file(tmp_path, mixed))
    load(access_file(tmp_path, mixed.partition("[[")[0]))
    load(access_file(tmp_path, ONE.replace('["reader"]', '["operator", "admin", "scraper"]')))


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = access_file(tmp_path, "")
    path.write_bytes(b"# \xff")
    with pytest.raises(InvalidAccessFile, match="byte 2: is not UTF-8"):
        load(path)


@pytest.mark.parametrize(
    ("time", "end"), [("0001-01-01T00:00:00+23:59", None), ("9999-12-31T23:59:59-23:59", 253402387139)]
)
def test_any_time_is_an_end(tmp_path: Path, time: str, end: int | None) -> None:
    loaded = load(access_file(tmp_path, ONE.replace('"a.key"', f'"a.key", expires = {time}')))
    assert loaded.principals.next_expiry(0) == end


SECRETS = [
    pytest.param("", "'a.key' has under 8 characters", id="empty"),
    pytest.param("\n", "'a.key' has under 8 characters", id="an empty line"),
    pytest.param("éé12345\n", "'a.key' has under 8 characters", id="short"),
    pytest.param("12345678\n12345678", "'a.key' has several lines", id="two lines"),
    pytest.param("12345678\0", "'a.key' has several lines, or characters", id="NUL"),
    pytest.param("1" * 4097, "'a.key' has more than 4096 bytes", id="long"),
]


@pytest.mark.parametrize(("secret", "reason"), SECRETS)
def test_what_is_no_secret(tmp_path: Path, secret: str, reason: str) -> None:
    path = access_file(tmp_path, ONE)
    write(tmp_path / "a.key", secret)
    with pytest.raises(InvalidAccessFile, match="principal p: keys") as raised:
        load(path)
    assert f"keys[0].secrets[0].file: {reason}" in str(raised.value)


def test_a_secret_that_is_not_utf_8(tmp_path: Path) -> None:
    path = access_file(tmp_path, ONE)
    (tmp_path / "a.key").write_bytes(b"\xff" * 20)
    with pytest.raises(InvalidAccessFile, match=r"'a\.key' is not UTF-8"):
        load(path)


@pytest.mark.parametrize(
    ("secret", "warned"), [("é234567812345678", False), ("12345678", True), ("123456781234567\r\n", True)]
)
def test_a_secret_of_under_16_characters_is_a_warning(tmp_path: Path, secret: str, warned: bool) -> None:
    path = access_file(tmp_path, ONE)
    write(tmp_path / "a.key", secret)
    loaded = load(path)
    expected = f"{path}: principal p: keys[0].secrets[0].file: 'a.key' has under 16 characters"
    assert loaded.warnings == ((expected,) if warned else ())


@pytest.mark.parametrize("name", ["a.key", "access.toml"])
@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o777, 0o601])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    path = access_file(tmp_path, ONE)
    (tmp_path / name).chmod(mode)
    with pytest.raises(InvalidAccessFile, match=rf"is open to all users of the machine \(mode {mode:04o}\)"):
        load(path)


@pytest.mark.parametrize("mode", [0o440, 0o640, 0o400, 0o660])
def test_a_group_may_read_as_in_a_mounted_secret(tmp_path: Path, mode: int) -> None:
    path = access_file(tmp_path, ONE)
    for name in ("a.key", "access.toml"):
        (tmp_path / name).chmod(mode)
    assert len(load(path).principals) == 1


@pytest.mark.parametrize("kind", ["absent", "folder", "pipe", "NUL", "unreadable"])
def test_what_cannot_be_read_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = access_file(tmp_path, ONE)
    secret = tmp_path / "a.key"
    secret.unlink()
    if kind == "folder":
        secret.mkdir(0o700)
    elif kind == "pipe":
        os.mkfifo(secret, 0o600)
    elif kind == "NUL":
        write(path, ONE.replace("a.key", "a\\u0000.key"))
    elif kind == "unreadable":
        secret.symlink_to(secret)
    with pytest.raises(
        InvalidAccessFile, match=r"secrets\[0\].file: 'a\S*' (cannot be read \(|is no regular file)"
    ):
        load(path)
    with pytest.raises(InvalidAccessFile, match=r"absent.toml: cannot be read \(No such file or directory\)"):
        load(tmp_path / "absent.toml")


def test_sizes_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(InvalidAccessFile) as raised:
        load(access_file(tmp_path, f'[principals.p]\nroles=["{"x" * 10_000}"]'))
    assert len(str(raised.value)) < len(str(tmp_path)) + 1_100
    many = "\n".join(f'[principals.p{number}]\nroles=["reader"]' for number in range(10_001))
    with pytest.raises(InvalidAccessFile, match="principals: are more than 10000"):
        load(access_file(tmp_path, many))
    with pytest.raises(InvalidAccessFile, match=r"access\.toml: has more than 1048576 bytes"):
        load(access_file(tmp_path, f"#{'x' * (1 << 20)}"))
    wild = ", ".join(f'"dns:{number}-*"' for number in range(91))
    with pytest.raises(InvalidAccessFile, match=r"1001 certificate patterns with \*, more than 1000"):
        load(
            access_file(
                tmp_path,
                "".join(
                    f'[principals.p{of}]\nroles=["reader"]\ncertificates=[{wild.replace("dns:", f"dns:{of}-")}]\n'
                    for of in range(11)
                ),
            )
        )


PARTS = (
    *('"', "'", "[", "]", "{", "}", "=", ".", ",", "\n", "#", "\\", "\0", "é", "\ud800"),
    *(
        "principals",
        "p",
        "roles",
        "reader",
        "operator",
        "keys",
        "accessKey",
        "secrets",
        "file",
        "a.key",
        "a.token",
    ),
    *(
        "expires",
        "2027-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "tokens",
        "limits",
    ),
    *("brokers", "certificates", "uri:*", "1e400", "nan", "0x7f", "true", SECRET),
)
FILES = st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text(max_size=60)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A right file with a few places cut out or written over."""
    text = draw(st.sampled_from([WHOLE, ONE]))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(("", *PARTS))) + text[at + draw(st.integers(0, 6)) :]
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return access_file(tmp_path_factory.mktemp("fuzz"), "").parent


@given(text=FILES | damaged())
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
def test_any_file_is_taken_or_is_the_one_error(folder: Path, text: str) -> None:
    path = folder / "access.toml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    of_the_text = [SECRET] if SECRET in text else []
    try:
        loaded = load(path)
    except InvalidAccessFile as error:
        _shows_nothing(error, *of_the_text)
        _shows_nothing("".join(format_exception(error)), *of_the_text)
    else:
        _shows_nothing(list(loaded.principals), *of_the_text)


def _shows_nothing(value: object, *but: str) -> None:
    for secret in {SECRET, OTHER, TOKEN, digest_of(TOKEN).reveal()} - set(but):
        assert secret not in f"{value} {value!r}"
