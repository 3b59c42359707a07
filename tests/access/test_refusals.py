"""The remark of a refusal: whatever rule and caller are, one line of 200 characters."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from access.classes import AccessClass
from access.limits import Limits
from access.patterns import Patterns
from access.principal import Principal
from access.refusals import REMARK_MOST, lacks, owner_remark, remark_of
from access.roles import Role


def test_it_says_what_is_needed_and_which_caller_this_is() -> None:
    text = remark_of(AccessClass.ADMIN, "loopback or signed over TLS", "wire:10.0.0.1:4242")
    assert text == "access denied: admin needs loopback or signed over TLS; caller wire:10.0.0.1:4242"


@given(st.sampled_from([*AccessClass]), st.text(max_size=300), st.text(max_size=300))
def test_it_is_one_line_whatever_rule_and_caller_are(of_class: AccessClass, needs: str, actor: str) -> None:
    text = remark_of(of_class, needs, actor)
    assert text.isprintable()
    assert len(text) <= REMARK_MOST
    assert text.startswith(f"access denied: {of_class.label} needs ")
    assert "; caller " in text


def test_a_known_caller_is_told_what_it_lacks_beside_its_proof() -> None:
    operator = Principal("p", frozenset({Role.OPERATOR}))
    limited = replace(operator, limits=Limits(topics=Patterns.of(["o-*"])))
    of = {one: lacks(operator, one) for one in (AccessClass.CONFIG, AccessClass.ADMIN)}
    assert of == {AccessClass.CONFIG: ", with a role for it", AccessClass.ADMIN: ""}
    assert lacks(limited, AccessClass.ADMIN) == ", for names within its limits"
    assert lacks(None, AccessClass.ADMIN) == ""


def test_what_is_cut_says_so() -> None:
    text = remark_of(AccessClass.BROKER, "cidr:10.0.0.0/24 or " * 20, "http:" + "a" * 300)
    assert len(text) == REMARK_MOST
    assert text.count("...") == 2


def test_what_is_another_owner_s_names_the_broker_in_one_line() -> None:
    assert owner_remark("b\r\n", "a\n") == "access denied: broker needs the owner of b??; caller a?"
