"""The remark of a refusal: whatever rule and caller are, one line of 200 characters."""

from hypothesis import given
from hypothesis import strategies as st

from access.classes import AccessClass
from access.refusals import REMARK_MOST, owner_remark, remark_of


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


def test_what_is_cut_says_so() -> None:
    text = remark_of(AccessClass.BROKER, "cidr:10.0.0.0/24 or " * 20, "http:" + "a" * 300)
    assert len(text) == REMARK_MOST
    assert text.count("...") == 2


def test_what_is_another_owner_s_names_the_broker_in_one_line() -> None:
    assert owner_remark("b\r\n", "a\n") == "access denied: broker needs the owner of b??; caller a?"
