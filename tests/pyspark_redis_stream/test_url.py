"""The pipeline and the name server read the same URLs: they are two distributions, each with its own parser."""

import re

import msgspec
import pytest

from pyspark_redis_stream import url as pipeline
from registry.store import url as name_server

URLS = [
    "redis://h:1/2",
    "redis://user:p%40ss@h?socket_timeout=3",
    "rediss://:word@h:6380?ssl_ca_certs=ca.pem",
    "unix:///run/redis.sock?db=1",
    "redis+sentinel://h,[::1]:2/main/3?sentinel_username=s&sentinel_password=t",
    "rediss+sentinel://user:word@h/main?ssl_certfile=c.pem",
    "redis+cluster://user:word@h,i:7000",
    "rediss+cluster://h",
]


@pytest.mark.parametrize("url", URLS)
def test_both_sides_connect_to_the_same_servers(url: str) -> None:
    assert msgspec.structs.asdict(pipeline.parse(url)) == msgspec.structs.asdict(name_server.parse(url))


@pytest.mark.parametrize(
    "url", ["", "http://h", "redis+sentinel://h", "redis+cluster://h:port", "redis://h:port"]
)
def test_both_sides_refuse_the_same_urls(url: str) -> None:
    with pytest.raises(ValueError, match="redis") as refused:
        name_server.parse(url)
    with pytest.raises(ValueError, match=re.escape(str(refused.value))):
        pipeline.parse(url)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("passwort=x", "passwort"),
        ("protocol=9", "protocol"),
        ("ss@h=1", "in a password"),
        ("ssl_ca_certs=c", "ssl_ca"),
    ],
)
@pytest.mark.parametrize(
    "form", ["redis://h", "redis+sentinel://h/main", "redis+cluster://u:p@h", "unix:///s"]
)
def test_a_wrong_parameter_is_named_without_its_value(form: str, query: str, text: str) -> None:
    for parse in (name_server.parse, pipeline.parse):
        with pytest.raises(ValueError, match=text) as refused:
            parse(f"{form}?{query}")
        assert "ss@h" not in str(refused.value)


@pytest.mark.parametrize("url", [*URLS, "no URL"])
@pytest.mark.parametrize("login", [("", ""), ("u/1", "p@2"), ("", "p"), ("u", "p", "s", "t")])
def test_both_sides_put_a_login_in_the_same_place(url: str, login: tuple[str, ...]) -> None:
    assert pipeline.with_login(url, *login) == name_server.with_login(url, *login)
