"""Which bytes are text."""


def is_utf8(content: bytes) -> bool:
    """Whether these bytes are UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
