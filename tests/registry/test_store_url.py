"""What the URL of a store says."""

import pytest

from registry.store.url import masked, parse, with_login

TLS = "?ssl_ca_certs=/ca.pem&ssl_check_hostname=false"


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "service", "settings"),
    [
        ("redis://h", "server", (), "", {"host": "h", "ssl": False}),
        ("rediss://u:p%40@h:1/2", "server", (), "", {"ssl": True, "username": "u", "password": "p@", "db": 2}),
        ("unix:///run/redis.sock", "server", (), "", {"path": "/run/redis.sock"}),
        ("redis+sentinel://h,i:7/main", "sentinel", (("h", 26379), ("i", 7)), "main", {"db": 0}),
        ("redis+sentinel://:p@h/a%2Fb/3", "sentinel", (("h", 26379),), "a/b", {"password": "p", "db": 3}),
        (f"rediss+sentinel://h/m{TLS}", "sentinel", (("h", 26379),), "m",
         {"ssl": True, "ssl_ca_certs": "/ca.pem"}),
        ("redis+cluster://u:p@h,i", "cluster", (("h", 6379), ("i", 6379)), "", {"username": "u", "ssl": False}),
        (f"rediss+cluster://[::1]:7,[::2]{TLS}", "cluster", (("::1", 7), ("::2", 6379)), "",
         {"ssl": True, "ssl_check_hostname": False}),
    ],
)  # fmt: skip
def test_each_form(
    url: str, kind: str, nodes: tuple[object, ...], service: str, settings: dict[str, object]
) -> None:
    at = parse(url)
    assert (at.kind, at.nodes, at.service) == (kind, nodes, service)
    assert at.settings | settings == at.settings


def test_a_login_for_sentinels_is_not_the_master_s() -> None:
    at = parse("redis+sentinel://u:p@h/m?sentinel_username=s&sentinel_password=q")
    assert at.sentinel == {"username": "s", "password": "q"}
    assert (at.settings["username"], at.settings["password"]) == ("u", "p")


@pytest.mark.parametrize(
    "url",
    ["", "h:6379", "http://h", "redis+sentinel://h", "redis+cluster://", "redis+other://h", "redis+cluster://h:x",
     "redis+sentinel://h/m/x", "redis://secret@h?socket_timeout=x"],
)  # fmt: skip
def test_a_bad_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"redis\+sentinel://host,host/service/db") as refused:
        parse(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "login", "made"),
    [
        ("redis://h", ("", ""), "redis://h"),
        ("redis://h/1?a=b", ("u", "p:@/ "), "redis://u:p%3A%40%2F%20@h/1?a=b"),
        ("redis://u:old@h", ("", "new"), "redis://u:new@h"),
        ("redis://u:old@h", ("v", ""), "redis://v:old@h"),
        ("unix:///s", ("u", "p"), "unix://u:p@/s"),
        ("redis+sentinel://h/m", ("", "p", "s", "q&"), "redis+sentinel://:p@h/m?sentinel_username=s&sentinel_password=q%26"),
        ("", ("u", "p"), ""),
    ],
)  # fmt: skip
def test_a_login_beside_the_url(url: str, login: tuple[str, ...], made: str) -> None:
    assert with_login(url, *login) == made
    if made:
        assert parse(made)


def test_no_password_is_shown() -> None:
    url = "redis+sentinel://u:one@h/m?sentinel_username=s&sentinel_password=two&ssl_ca_certs=c"
    assert (
        masked(url) == "redis+sentinel://u:***@h/m?sentinel_username=s&sentinel_password=***&ssl_ca_certs=c"
    )
