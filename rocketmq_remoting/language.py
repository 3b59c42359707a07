"""The language of a peer's implementation: a byte in binary headers, a name in JSON headers."""

from enum import IntEnum


class LanguageCode(IntEnum):
    """The languages of RocketMQ 4.8.0 to 5.5.0; other codes are accepted from peers."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13
