"""What the URL of a store says."""

import re

import pytest
import redis as redis_py

from registry.store.connect import connect_async, connect_once
from registry.store.url import PLAIN, TCP, TLS, masked, parse, with_login

CERTIFICATES = "?ssl_ca_certs=/ca.pem&ssl_check_hostname=false"


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "service", "settings"),
    [
        ("redis://h", "server", (), "", {"host": "h", "ssl": False}),
        ("rediss://u:p%40@h:1/2", "server", (), "", {"ssl": True, "username": "u", "password": "p@", "db": 2}),
        ("unix:///run/redis.sock", "server", (), "", {"path": "/run/redis.sock"}),
        ("redis+sentinel://h,i:7/main", "sentinel", (("h", 26379), ("i", 7)), "main", {"db": 0}),
        ("redis+sentinel://:p@h/a%2Fb/3", "sentinel", (("h", 26379),), "a/b", {"password": "p", "db": 3}),
        (f"rediss+sentinel://h/m{CERTIFICATES}", "sentinel", (("h", 26379),), "m",
         {"ssl": True, "ssl_ca_certs": "/ca.pem"}),
        ("redis+cluster://u:p@h,i", "cluster", (("h", 6379), ("i", 6379)), "", {"username": "u", "ssl": False}),
        (f"rediss+cluster://[::1]:7,[::2]{CERTIFICATES}", "cluster", (("::1", 7), ("::2", 6379)), "",
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
     "redis+sentinel://h/m/x"],
)  # fmt: skip
def test_a_bad_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"redis\+sentinel://host,host/service/db") as refused:
        parse(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:secret@h?passwort=secret", "the parameter passwort is unknown; did you mean password?"),
        ("redis://h?password=secret&protocol=9", "protocol has a value that it cannot have; it is 2 or 3"),
        ("redis://h?socket_timeout=secret", "the parameter socket_timeout has a value"),
        ("redis://h?socket_timeout=-1", "the parameter socket_timeout has a value"),
        ("redis://h?socket_timeout=nan", "the parameter socket_timeout has a value"),
        ("redis://h?max_connections=0", "the parameter max_connections has a value"),
        ("redis://h?db=-1", "the parameter db has a value"),
        ("redis://h?ssl_ca_certs=/secret", "the parameter ssl_ca_certs needs TLS: rediss:// or rediss+"),
        ("rediss+sentinel://h/m?ssl_cert_reqs=secret", "the parameter ssl_cert_reqs has a value"),
        ("redis+cluster://h?sentinel_password=secret", "the parameter sentinel_password is unknown"),
        ("redis+sentinel://h/m?parser_class=secret", "the parameter parser_class is unknown"),
        ("unix:///s?port=1", "the parameter port is unknown"),
        ("redis://a?secret=b@h", "in a password ? is written %3F"),
        ("redis://h?%73ecret%20x=y", "a parameter behind the ? is unknown"),
    ],
)  # fmt: skip
def test_a_parameter_that_is_wrong_is_named_without_its_value(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        parse(url)
    assert "secret" not in str(refused.value)


URLS = {
    "redis://h": PLAIN | TCP,
    "unix:///s": PLAIN | {"path"},
    "rediss://h": PLAIN | TCP | TLS,
    "redis+sentinel://h/m": PLAIN | TCP,
    "rediss+sentinel://h/m": PLAIN | TCP | TLS,
    "rediss+cluster://h": PLAIN | TCP | TLS,
}
VALUES = {
    "protocol": "3",
    "ssl_cert_reqs": "none",
    "encoding": "utf-8",
    "ssl_include_verify_flags": "VERIFY_X509_STRICT",
}


@pytest.mark.parametrize("url", URLS)
def test_clients_take_each_known_parameter(url: str) -> None:
    for name in URLS[url] - {"host", "port", "path"} - ({"db"} if "cluster" in url else set()):
        value = VALUES.get(name, VALUES.get(name.replace("exclude", "include"), "1"))
        for connect in (connect_once_, connect_async):
            connect(f"{url}?{name}={value}").connection_pool.make_connection()


def connect_once_(url: str) -> redis_py.Redis:
    return connect_once(url, "default", 1.0)


@pytest.mark.parametrize(
    ("url", "login", "made"),
    [
        ("redis://h", ("", ""), "redis://h"),
        ("redis://h/1?client_name=b", ("u", "p:@/ "), "redis://u:p%3A%40%2F%20@h/1?client_name=b"),
        ("redis://u:old@h", ("", "new"), "redis://u:new@h"),
        ("redis://u:old@h", ("v", ""), "redis://v:old@h"),
        ("unix:///s", ("u", "p"), "unix://u:p@/s"),
        ("redis+sentinel://h/m", ("", "p", "s", "q&"), "redis+sentinel://:p@h/m?sentinel_username=s&sentinel_password=q%26"),
        ("redis://h", ("", "p", "s", "q"), "redis://:p@h"),
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
