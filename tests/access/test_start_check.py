"""What a name server does not start with (row AC-29), and what it only warns of."""

from pathlib import Path

import pytest

from access.start_check import is_insecure, refusal, warnings
from registry.options.catalogue import Options, resolve

LOCAL = {"MQNS_BIND_ADDRESS": "127.0.0.1", "MQNS_HTTP_BIND_ADDRESS": "::1"}
TRUSTED = {
    "MQNS_TLS_TEST_MODE_ENABLE": "false",
    "MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "require",
    "MQNS_TLS_SERVER_TRUST_CERT_PATH": "/trust.pem",
}


def given(*settings: str, **more: str) -> Options:
    """Return the options of `KEY=value`, without `MQNS_`; there is no TLS file."""
    env = {f"MQNS_{key}": text for key, _, text in (setting.partition("=") for setting in settings)}
    return resolve({}, {"MQNS_TLS_CONFIG_FILE": "/nonexistent"} | env | more)


@pytest.mark.parametrize("profile", ["", "local", "guarded", "secure", "java"])
def test_every_profile_starts(profile: str) -> None:
    assert refusal(given(f"ACCESS_PROFILE={profile}")) is None
    assert refusal(given(f"ACCESS_PROFILE={profile}", **LOCAL)) is None


@pytest.mark.parametrize(
    "rule",
    [
        *("open", "loopback open", "remoting", "cidr:0.0.0.0/0", "cidr:::/0", "net+cidr:0.0.0.0/0+open"),
        *("tls", "open+tls", "net"),
    ],
)
@pytest.mark.parametrize("key", ["ACCESS_ADMIN", "ACCESS_CONFIG"])
def test_what_operators_do_is_not_open_to_all(key: str, rule: str) -> None:
    options = given(f"{key}={rule}", "ACCESS_NETWORKS=10.0.0.0/8,0.0.0.0/0")
    reason = refusal(options) or ""
    name = "accessAdmin" if key == "ACCESS_ADMIN" else "accessConfig"
    assert reason.startswith(f"{name}={rule} lets any caller at 0.0.0.0:9876 do what operators do; ")
    assert "accessInsecure=true" in reason
    assert "\n" not in reason
    assert is_insecure(options)


@pytest.mark.parametrize(
    "rule",
    ["loopback", "net", "cidr:10.0.0.0/8", "open+signed", "remoting+mtls", "off", "open+cidr:10.0.0.0/8"],
)
def test_rules_that_ask_for_something_are_not_open(rule: str) -> None:
    assert refusal(given(f"ACCESS_ADMIN={rule}", **TRUSTED)) is None
    assert not is_insecure(given(f"ACCESS_ADMIN={rule}", **TRUSTED))


def test_a_listener_on_loopback_may_be_open() -> None:
    options = given("ACCESS_ADMIN=open", "ACCESS_CONFIG=open", **LOCAL)
    assert refusal(options) is None
    assert warnings(options) == ()
    assert not is_insecure(options)


def test_each_listener_counts_by_itself() -> None:
    http = given("ACCESS_ADMIN=open", "HTTP_PORT=81", **LOCAL | {"MQNS_HTTP_BIND_ADDRESS": "0.0.0.0"})
    assert "any caller at 0.0.0.0:81 do" in (refusal(http) or "")
    on_wire = given("ACCESS_ADMIN=remoting", **LOCAL | {"MQNS_HTTP_BIND_ADDRESS": "0.0.0.0"})
    assert refusal(on_wire) is None
    both = given("ACCESS_ADMIN=open", HTTP="", MQNS_HTTP_BIND_ADDRESS="10.0.0.1")
    assert "any caller at 0.0.0.0:9876 or 10.0.0.1:8080 do" in (refusal(both) or "")


def test_a_certificate_that_all_have_to_show_is_a_proof() -> None:
    assert refusal(given("ACCESS_ADMIN=tls", **TRUSTED)) is None
    assert refusal(given("ACCESS_ADMIN=tls", **TRUSTED | {"MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "optional"}))


@pytest.mark.parametrize("consent", ["ACCESS_INSECURE=true", "ACCESS_PROFILE=java"])
def test_with_consent_it_starts_with_a_warning(consent: str) -> None:
    options = given("ACCESS_ADMIN=open", consent)
    assert refusal(options) is None
    assert warnings(options)[0].startswith("accessAdmin=open lets any caller at 0.0.0.0:9876 do")
    assert "; " in warnings(options)[0]
    assert is_insecure(options)


def test_a_guarded_start_warns_of_nothing() -> None:
    assert warnings(given()) == ()
    assert not is_insecure(given())


def test_observing_is_as_good_as_open() -> None:
    options = given("ACCESS_MODE=observe")
    assert refusal(options) is None
    assert [sentence.partition(" ")[0] for sentence in warnings(options)] == ["accessMode=observe"]
    assert is_insecure(options)
    assert not is_insecure(given("ACCESS_MODE=observe", **LOCAL))


def test_any_client_a_proxy_of_http_is_warned_of() -> None:
    assert "httpTrustedProxies=0.0.0.0/0" in warnings(given("HTTP_TRUSTED_PROXIES=0.0.0.0/0"))[0]


@pytest.mark.parametrize(
    ("tls", "lack"),
    [
        ({}, "tls.test.mode.enable=true; "),
        (TRUSTED | {"MQNS_TLS_SERVER_MODE": "disabled"}, "tls.server.mode=disabled; "),
        (TRUSTED | {"MQNS_TLS_TEST_MODE_ENABLE": "true"}, "tls.test.mode.enable=true; "),
        (TRUSTED | {"MQNS_TLS_SERVER_TRUST_CERT_PATH": ""}, "tls.server.trustCertPath"),
        (TRUSTED | {"MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "none"}, "tls.server.authClient=true, or require"),
        (
            TRUSTED | {"MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "optional"},
            "tls.server.authClient=true, or require",
        ),
    ],
)
@pytest.mark.parametrize("rule", ["mtls", "net+mtls mtls+tls"])
def test_a_rule_that_only_certificates_meet_needs_that_clients_can_show_them(
    tls: dict[str, str], lack: str, rule: str
) -> None:
    reason = refusal(given(f"ACCESS_BROKER={rule}", **tls)) or ""
    assert reason.startswith(f"accessBroker={rule} admits no caller, for ")
    assert lack in reason
    assert refusal(given(f"ACCESS_BROKER={rule} loopback", **tls)) is None


def test_certificates_that_clients_can_show_are_enough() -> None:
    assert refusal(given("ACCESS_BROKER=mtls", **TRUSTED)) is None
    optional = {"MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "optional", "MQNS_TLS_SERVER_AUTH_CLIENT": "true"}
    assert refusal(given("ACCESS_BROKER=mtls", **TRUSTED | optional)) is None


def test_certificates_of_principals_that_no_client_is_asked_for_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(
        '[principals.brokers]\nroles = ["broker"]\ncertificates = ["dns:*.brokers.rocketmq.svc"]\n'
    )
    file.chmod(0o600)
    half = TRUSTED | {"MQNS_TLS_SERVER_NEED_CLIENT_AUTH": "optional", "MQNS_ACCESS_FILE": str(file)}
    (warning,) = warnings(given(**half))
    assert warning.startswith(
        "accessFile: no certificate proves principal brokers, for clients are asked for no"
    )
    assert warnings(given(MQNS_TLS_SERVER_AUTH_CLIENT="true", **half)) == ()


def test_the_tls_file_counts(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.server.mode=disabled\n")
    options = given("ACCESS_BROKER=mtls", MQNS_TLS_CONFIG_FILE=str(file), **TRUSTED)
    assert "tls.server.mode=disabled" in (refusal(options) or "")


@pytest.mark.parametrize("networks", ["0.0.0.0/0", "127.0.0.0/8,::/0"])
def test_no_peer_names_its_own_address(networks: str) -> None:
    wide = f"PROXY_TRUSTED_CIDRS={networks}"
    assert (refusal(given(wide)) or "").startswith(f"proxyTrustedCidrs={networks} has each peer name its own")
    assert refusal(given(wide, "PROXY_REQUIRED=true"))
    assert refusal(given(wide, "PROXY_PROTOCOL=false")) is None


@pytest.mark.parametrize("rule", ["net", "cidr:10.1.2.0/24", "open cidr:10.1.2.3/32+signed"])
@pytest.mark.parametrize("key", ["READ", "BROKER", "ADMIN", "CONFIG"])
def test_a_balancer_within_a_rule_has_to_say_for_whom_it_asks(key: str, rule: str) -> None:
    """Else whatever comes through it has its rights."""
    options = (f"ACCESS_{key}={rule}", "ACCESS_INSECURE=true", "PROXY_TRUSTED_CIDRS=127.0.0.1,10.1.2.3")
    assert f"of access{key.capitalize()}: " in (refusal(given(*options)) or "")
    assert refusal(given(*options, "PROXY_REQUIRED=true")) is None
    assert (
        refusal(
            given(
                *options[:2], "PROXY_TRUSTED_CIDRS=127.0.0.1,11.1.2.3,fd00::1", "ACCESS_NETWORKS=10.0.0.0/8"
            )
        )
        is None
    )


def test_metrics_have_no_balancer_of_the_wire() -> None:
    assert refusal(given("ACCESS_METRICS=net", "ACCESS_AUDIT=net", "PROXY_TRUSTED_CIDRS=10.1.2.3")) is None


def test_loopback_is_trusted_by_default() -> None:
    """A proxy on this machine passes for what `loopback` admits."""
    assert refusal(given("ACCESS_BROKER=net", "ACCESS_ADMIN=net loopback")) is None


@pytest.mark.parametrize("rule", ["opne", "off loopback", "cidr:10.0.0.1/8", "cidr:fe80::%1/64", "+"])
def test_a_rule_that_is_none_is_a_reason(rule: str) -> None:
    reason = refusal(given(f"ACCESS_READ={rule}")) or ""
    assert reason.startswith(f"accessRead={rule}: ")
    assert "docs/access.md" in reason


@pytest.mark.parametrize("rule", ["opne\nopen", "open\u2028loopback"])
def test_a_reason_is_one_line(rule: str) -> None:
    reason = refusal(given(f"ACCESS_ADMIN={rule}")) or ""
    assert reason.isprintable()
    assert reason.startswith("accessAdmin=op")
