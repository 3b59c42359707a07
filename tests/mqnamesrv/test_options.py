"""The catalogue of options: where values come from, how texts are read, what requests 318 and 319 see."""

import re

import pytest
from msgspec.structs import replace

from registry.options.catalogue import (
    ADDRESSES,
    BY_KEY,
    CATALOGUE,
    CHOICES,
    GROWTH_LIMITS,
    NETWORKS,
    InvalidOption,
    Options,
    acceptable,
    black_list,
    for_print,
    from_env,
    given_settings,
    listing,
    overlay,
    resolve,
    to_env,
)
from registry.options.load import load, resolved, warnings
from registry.options.without_effect import without_effect

HOME = {"HOME": "/home/mq"}


@pytest.mark.parametrize(
    ("file", "env", "cli", "port"),
    [
        pytest.param({}, {}, {}, 9876, id="default"),
        pytest.param({"listenPort": "1"}, {}, {}, 1, id="file over default"),
        pytest.param({"listenPort": "1"}, {"MQNS_LISTEN_PORT": "2"}, {}, 2, id="environment over file"),
        pytest.param({"listenPort": "1"}, {"MQNS_LISTEN_PORT": ""}, {}, 1, id="an empty variable is unset"),
        pytest.param(
            {}, {"MQNS_LISTEN_PORT": "2"}, {"listenPort": "3"}, 3, id="command line over environment"
        ),
        pytest.param({"listenPort": "abc"}, {}, {}, 9876, id="a file's bad number is ignored"),
        pytest.param(
            {"listenPort": "99999999999"}, {}, {}, 9876, id="a file's number over 32 bits is ignored"
        ),
        pytest.param({"listenPort": "1_0"}, {}, {}, 9876, id="Python's own spellings are not numbers"),
        pytest.param({"listenPort": "+10"}, {}, {}, 10, id="a sign is"),
    ],
)
def test_precedence(file: dict[str, str], env: dict[str, str], cli: dict[str, str], port: int) -> None:
    assert resolve(file, env, cli).listen_port == port


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("listenPort", "MQNS_LISTEN_PORT"),
        ("rocketmqHome", "MQNS_ROCKETMQ_HOME"),
        ("tls.server.mode", "MQNS_TLS_SERVER_MODE"),
        ("tls.server.keyPath", "MQNS_TLS_SERVER_KEY_PATH"),
        ("useTLS", "MQNS_USE_TLS"),
        ("unRegisterBrokerQueueCapacity", "MQNS_UN_REGISTER_BROKER_QUEUE_CAPACITY"),
        ("probeTimeoutMillis", "MQNS_PROBE_TIMEOUT_MILLIS"),
    ],
)
def test_variable_names(key: str, variable: str) -> None:
    assert BY_KEY[key].env == variable


def test_each_option_can_be_set_by_its_variable() -> None:
    other = {"bool": "true", "str": "changed", "int": "77", "long": "77"}
    for option in CATALOGUE:
        text = "false" if option.default is True else other[option.type]
        if option.name.endswith("redis_url"):
            text = "redis://changed"
        if option.key in NETWORKS:
            text = "10.0.0.0/8"
        if option.key == "checkAddress":
            text = "localhost:9876"
        if option.key in ADDRESSES:
            text = "blue=localhost:9876" if option.key == "discoveryUnits" else "localhost:9876"
        if option.key in CHOICES:
            text = CHOICES[option.key][-1]
        changed = resolve({}, HOME | {option.env: text})
        assert getattr(changed, option.name) != option.default, option.key


@pytest.mark.parametrize(
    ("env", "attribute", "value"),
    [
        pytest.param({"REDIS_URL": "redis://r"}, "redis_url", "redis://r", id="REDIS_URL"),
        pytest.param({"REDIS_URL": "redis://r"}, "rq_redis_url", "redis://r", id="jobs share it"),
        pytest.param({"RQ_REDIS_URL": "redis://q"}, "rq_redis_url", "redis://q", id="RQ_REDIS_URL"),
        pytest.param(
            {"REDIS_URL": "redis://r", "MQNS_REDIS_URL": "redis://m"},
            "redis_url",
            "redis://m",
            id="ours first",
        ),
        pytest.param(
            {
                "REDIS_URL": "rediss+sentinel://s1,s2/main?ssl_ca_certs=/ca.pem",
                "MQNS_REDIS_USERNAME": "namesrv",
                "MQNS_REDIS_PASSWORD": "p@:/?",
                "MQNS_REDIS_SENTINEL_PASSWORD": "s&=",
            },
            "redis_url",
            "rediss+sentinel://namesrv:p%40%3A%2F%3F@s1,s2/main"
            "?ssl_ca_certs=%2Fca.pem&sentinel_password=s%26%3D",
            id="logins beside the URL",
        ),
        pytest.param(
            {"REDIS_URL": "redis://u:old@r/1", "MQNS_REDIS_PASSWORD": "new"},
            "rq_redis_url",
            "redis://u:new@r/1",
            id="a password in the place of another",
        ),
        pytest.param(
            {"REDIS_URL": "redis://r", "RQ_REDIS_URL": "redis://q", "MQNS_RQ_REDIS_PASSWORD": "w"},
            "rq_redis_url",
            "redis://:w@q",
            id="the queue's own password",
        ),
        pytest.param({"MQNS_REDIS_PASSWORD": "w"}, "redis_url", "", id="none for the embedded store"),
        pytest.param({"ROCKETMQ_HOME": "/opt/mq"}, "rocketmq_home", "/opt/mq", id="ROCKETMQ_HOME"),
        pytest.param(
            {"ROCKETMQ_SERIALIZE_TYPE": "ROCKETMQ"}, "serialize_type", "ROCKETMQ", id="serialize type"
        ),
        pytest.param({}, "kv_config_path", "/home/mq/namesrv/kvConfig.json", id="below the home folder"),
        pytest.param({}, "data_dir", "/home/mq/.local/share/redis-namesrv", id="data dir"),
        pytest.param({"XDG_DATA_HOME": "/x"}, "data_dir", "/x/redis-namesrv", id="XDG data dir"),
        pytest.param(
            {"MQNS_BIND_ADDRESS": "::"}, "http_bind_address", "127.0.0.1", id="HTTP does not follow"
        ),
        pytest.param({}, "access_profile", "guarded", id="on all addresses, as by default"),
        pytest.param({"MQNS_BIND_ADDRESS": "localhost"}, "access_profile", "local", id="on loopback alone"),
        pytest.param(
            {"MQNS_BIND_ADDRESS": "127.0.0.1", "MQNS_HTTP_BIND_ADDRESS": "0.0.0.0"},
            "access_profile",
            "guarded",
            id="HTTP on all addresses",
        ),
        pytest.param(
            {"MQNS_ACCESS_PROFILE": "secure"}, "access_admin", "signed mtls token", id="a profile's rule"
        ),
        pytest.param(
            {"MQNS_ACCESS_PROFILE": "secure", "MQNS_ACCESS_ADMIN": "mtls"},
            "access_admin",
            "mtls",
            id="a rule",
        ),
        pytest.param({"MQNS_BIND_ADDRESS": "::1"}, "max_connections_per_ip", 0, id="no limit on loopback"),
        pytest.param({}, "max_connections_per_ip", 5000, id="a limit for others"),
    ],
)
def test_values_from_the_environment(env: dict[str, str], attribute: str, value: str | int) -> None:
    assert getattr(resolve({}, HOME | env), attribute) == value


def test_the_file_overrides_java_s_default_home() -> None:
    assert resolve({"rocketmqHome": "/file"}, {"ROCKETMQ_HOME": "/env"}).rocketmq_home == "/file"


@pytest.mark.parametrize(
    ("env", "text"),
    [
        pytest.param({"MQNS_LISTEN_PORT": "abc"}, "MQNS_LISTEN_PORT=abc", id="no number"),
        pytest.param({"MQNS_REMOTING_WORKERS": "0"}, "MQNS_REMOTING_WORKERS=0", id="no worker"),
        pytest.param({"MQNS_PROBE_TIMEOUT_MILLIS": "-1"}, "MQNS_PROBE_TIMEOUT_MILLIS=-1", id="negative time"),
        pytest.param({"MQNS_PROXY_PROTOCOL": "yes"}, "MQNS_PROXY_PROTOCOL=yes", id="neither true nor false"),
        pytest.param({"MQNS_PROBE_NETWORKS": "10.0.0.0/8,x"}, "probeNetworks: 'x' does", id="no network"),
        pytest.param(
            {"MQNS_PROXY_TRUSTED_CIDRS": "10.0.0.1/8"}, "proxyTrustedCidrs: 10.0.0.1/8 has", id="host bits"
        ),
        pytest.param(
            {"MQNS_HTTP_TRUSTED_PROXIES": "proxy"},
            "httpTrustedProxies: 'proxy' does",
            id="no network of proxies",
        ),
        *(
            pytest.param(
                {"MQNS_HTTP_ALLOWED_HOSTS": f"ns.example.com,{entry}"},
                f"httpAllowedHosts: '{re.escape(entry)}' is no name",
                id=f"{entry} is no host",
            )
            for entry in (
                "*.example.com",
                "a..b",
                "http://a",
                "a:80",
                "[::1]",
                ".",
                "**",
                "-a",
                "a b",
                "\u00e9",
            )
        ),
        pytest.param(
            {"MQNS_HTTP_USER_HEADER": "X Forwarded"}, "httpUserHeader=X Forwarded", id="no name of a header"
        ),
    ],
)
def test_a_bad_variable_is_named(env: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOption, match=f"^{text}(: | )"):
        resolve({}, env)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("TRUE", True),
        ("True", True),
        ("false", False),
        ("1", False),
        ("yes", False),
        ("", False),
    ],
)
def test_java_s_booleans(text: str, value: bool) -> None:
    assert resolve({"enableTopicList": text}, {}).enable_topic_list is value


def test_texts_lose_their_blanks() -> None:
    assert resolve({"bindAddress": "\t127.0.0.1 \x01"}, {}).bind_address == "127.0.0.1"


@pytest.mark.conformance("CFG-01", "CFG-02")
def test_listing_is_sorted_and_java_s() -> None:
    keys = [key for key, _ in listing(resolve({"rocketmqHome": "/h"}, HOME))]
    assert keys == sorted(keys)
    assert len(keys) == 40
    assert keys[0] == "bindAddress"
    assert keys[-1] == "writeBufferLowWaterMark"
    assert not {"connectTimeoutMillis", "tls.server.mode", "httpPort", "redisUrl"} & set(keys)


def test_listing_leaves_out_what_is_unset() -> None:
    assert "rocketmqHome" not in dict(listing(Options()))


@pytest.mark.conformance("CFG-13")
def test_unknown_keys_of_the_file_are_listed() -> None:
    assert ("myKey", "x") in listing(resolve({"myKey": "x"}, HOME))


@pytest.mark.conformance("CFG-03", "CFG-04", "CFG-05")
@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        pytest.param({"orderMessageEnable": "True"}, {"orderMessageEnable": "true"}, id="known"),
        pytest.param({"listenPort": "abc"}, {}, id="no number"),
        pytest.param({"bindAddress": " x "}, {"bindAddress": "x"}, id="trimmed"),
        pytest.param({"noSuchKey": "x"}, {}, id="unknown"),
        pytest.param({"myKey": "y"}, {"myKey": "y"}, id="known from the -c file"),
        pytest.param({"connectTimeoutMillis": "1", "httpPort": "1"}, {}, id="not of the two configurations"),
    ],
)
def test_what_an_update_takes(wanted: dict[str, str], taken: dict[str, str]) -> None:
    assert acceptable(resolve({"myKey": "x"}, HOME), wanted) == taken


def test_shared_values_are_in_force_or_only_listed() -> None:
    options = resolve({"myKey": "x"}, HOME)
    shared = overlay(options, {"orderMessageEnable": "true", "listenPort": "1", "myKey": "y", "other": "z"})
    assert shared.order_message_enable is True
    assert shared.listen_port == options.listen_port
    shown = dict(listing(shared))
    assert (shown["orderMessageEnable"], shown["listenPort"], shown["myKey"]) == ("true", "1", "y")
    assert "other" not in shown
    assert overlay(options, {}) == options


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("clientRequestThreadPoolQueueCapacity", "0"),
        ("defaultThreadPoolQueueCapacity", "-1"),
        ("unRegisterBrokerQueueCapacity", "-2147483648"),
        ("waitSecondsForService", "-1"),
        ("listenPort", "65536"),
        ("serverSocketBacklog", "-1"),
    ],
)
def test_shared_values_out_of_range_are_listed_and_not_in_force(key: str, text: str) -> None:
    options = resolve({}, HOME)
    shared = overlay(options, {key: text})
    assert dict(listing(shared))[key] == text  # as Java's
    assert replace(shared, listing_also=()) == options


@pytest.mark.parametrize("key", GROWTH_LIMITS)
def test_limits_of_growth_cannot_be_shared(key: str) -> None:
    options = resolve({}, HOME)
    for text in ("1", "0", "-1", str(1 << 62)):
        assert acceptable(options, {key: text}) == {}
        assert overlay(options, {key: text}) == options


@pytest.mark.conformance("CFG-08", "CFG-09", "CFG-11")
def test_black_list() -> None:
    by_default = {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"}
    given = black_list(resolve({"configBlackList": "bindAddress;listenPort"}, {}))
    assert given - black_list(resolve({"configBlackList": ""}, {})) == {"bindAddress", "listenPort"}
    assert by_default < given


def test_no_request_opens_a_door() -> None:
    """Contract of access, section 8: on 318's black list for good."""
    black = black_list(resolve({"configBlackList": ""}, {}))
    doors = {option.key for option in CATALOGUE if option.key.startswith(("access", "proxy", "tls."))}
    assert {"accessAdmin", "accessFile", "proxyTrustedCidrs", "tls.server.mode"} < doors
    assert {*doors, "httpBindAddress", "ownershipGuard"} <= black


def test_given_settings_are_the_live_ones_of_file_and_environment() -> None:
    file = {"orderMessageEnable": "TRUE", "listenPort": "1", "myKey": "x"}
    env = {"MQNS_WAIT_SECONDS_FOR_SERVICE": "3", "MQNS_HTTP_PORT": "0"}
    assert given_settings(file, env) == {"orderMessageEnable": "true", "waitSecondsForService": "3"}


def test_children_get_the_resolved_options() -> None:
    options = resolved({"myKey": "x", "listenPort": "1"}, HOME | {"MQNS_TLS_SERVER_MODE": "disabled"})
    assert ("listen_port", "file") in options.sources
    assert "myKey" in options.without_effect[0]
    assert from_env(to_env(options) | {"MQNS_LISTEN_PORT": "2"}) == options


def test_a_process_of_its_own_reads_file_and_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("conf") / "n.properties"
    file.write_bytes("productEnvName=caf\xe9\nlistenPort=1\n".encode("latin-1"))
    options = load({"MQNS_CONFIG_FILE": str(file), "MQNS_LISTEN_PORT": "2"})
    assert (options.product_env_name, options.listen_port) == ("café", 2)
    assert load({}).listen_port == 9876


def test_secrets_are_not_printed() -> None:
    env = {"REDIS_URL": "redis://me:secret@host:1/0", "MQNS_TLS_SERVER_KEY_PASSWORD": "secret"}
    printed = dict(for_print(resolve({}, env)))
    assert printed["redisUrl"] == "redis://me:***@host:1/0"
    assert printed["tls.server.keyPassword"] == "***"
    assert "secret" not in str(printed)


def test_every_option_says_what_it_is() -> None:
    assert [o.key for o in CATALOGUE if not o.why] == []


ALL = "is no option and has no effect; docs/options.md lists all"


@pytest.mark.parametrize(
    ("file", "env", "sentences"),
    [
        pytest.param(
            {"listenPort": "1"}, {"MQNS_LISTEN_PORT": "2", "REDIS_URL": "", "PATH": "/"}, [], id="known"
        ),
        pytest.param(
            {},
            {"MQNS_LISTN_PORT": "1"},
            ["MQNS_LISTN_PORT is no option and has no effect; did you mean MQNS_LISTEN_PORT?"],
            id="a slip",
        ),
        pytest.param({}, {"MQNS_COLOUR": "red"}, [f"MQNS_COLOUR {ALL}"], id="like no other"),
        pytest.param(
            {"listenport": "1", "colour": "red"},
            {},
            ["listenport is no option and has no effect; did you mean listenPort?", f"colour {ALL}"],
            id="keys of the file",
        ),
        pytest.param(
            {"listenPort": "abc"},
            {},
            [
                "listenPort=abc is ignored, as Java does: not a number that listenPort can be; correct the file"
            ],
            id="a number of the file",
        ),
        pytest.param(
            {"maxKvKeys": "0", "maxPercentOfHost": "500", "maxBrokers": "1"},
            {},
            [
                f"{key}={text} is ignored: not a number that {key} can be; correct the file"
                for key, text in (("maxKvKeys", "0"), ("maxPercentOfHost", "500"))
            ],
            id="numbers of our own",
        ),
        pytest.param(
            {"allowEvictingStore": "maybe", "clusterTest": "1", "orderMessageEnable": "TRUE"},
            {},
            [
                "allowEvictingStore=maybe counts as false: it is neither true nor false; correct the file",
                "clusterTest=1 counts as false, as Java reads it: it is neither true nor false; correct the file",
            ],
            id="flags of the file",
        ),
        pytest.param(
            {},
            {
                "MQNS_HTTP": "x",
                "MQNS_SECRET_KEY": "x",
                "MQNS_PIPELINE_URL": "x",
                "MQNS_TLS_KEY_PASSWORD": "x",
            },
            [],
            id="the other programs'",
        ),
        pytest.param(
            {},
            {
                "MQNS_PORT": "tcp://10.0.0.1:9876",
                "MQNS_SERVICE_HOST": "10.0.0.1",
                "MQNS_SERVICE_PORT": "9876",
                "MQNS_SERVICE_PORT_REMOTING": "9876",
                "MQNS_PORT_9876_TCP": "tcp://10.0.0.1:9876",
                "MQNS_PORT_9876_TCP_ADDR": "10.0.0.1",
                "MQNS_BLUE_SERVICE_HOST": "10.0.0.1",
                "MQNS_BLUE_PORT": "tcp://10.0.0.1:9876",
            },
            [],
            id="Kubernetes' of a Service",
        ),
        pytest.param({}, {"MQNS_PORT": "9876"}, [f"MQNS_PORT {ALL}"], id="a port that is no Service's"),
    ],
)
def test_what_has_no_effect(file: dict[str, str], env: dict[str, str], sentences: list[str]) -> None:
    assert without_effect(file, env) == sentences


def test_what_a_supervisor_logged_is_not_logged_again() -> None:
    assert len(warnings({"MQNS_COLOUR": "red"})) == 1
    assert warnings({"MQNS_COLOUR": "red"} | to_env(Options())) == ()
