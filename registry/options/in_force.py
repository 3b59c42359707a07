"""Every option of a running process: its value in force, where that comes from, and what is shared through Redis."""

from collections.abc import Iterator, Mapping
from typing import cast

from msgspec import Struct

from registry.options.catalogue import CATALOGUE, Option, Options, Source, overlay, shown, text_of


class OptionInForce(Struct, frozen=True):
    """One option. Texts are as Java prints them, secrets masked; `shared` is None where Redis has no value.

    `differs`: the shared value is another than the one in force."""

    option: Option
    value: str
    source: Source
    shared: str | None
    differs: bool

    @property
    def changed(self) -> bool:
        """Whether it is not as it would be by default: a file that was rewritten has many defaults."""
        is_set = self.source not in ("default", "computed") and self.value != text_of(self.option.default)
        return is_set or self.source == "shared" or self.differs


def in_force(given: Options, shared: Mapping[str, str]) -> Iterator[OptionInForce]:
    """Yield all options of a process that was started with `given`, in the order of the catalogue."""
    options, sources = overlay(given, shared), dict(given.sources)
    for option in CATALOGUE:
        value, text = getattr(options, option.name), shared.get(option.key)
        source = sources.get(option.name, "default")
        if value != getattr(given, option.name):
            source = "shared"
        yield OptionInForce(
            option,
            shown(option, value),
            cast(Source, source),
            None if text is None else shown(option, text),
            text is not None and text != text_of(value),
        )
