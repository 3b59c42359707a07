"""Texts of the store: what is no UTF-8 is damage, since no peer could have sent it."""


def is_text(value: str) -> bool:
    """Whether the value is text; other bytes come as halves of surrogate pairs (registry/store/connect.py)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
