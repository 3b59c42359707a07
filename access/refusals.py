"""The text of a refusal, the same on the wire and over HTTP."""

from typing import Final

from access.classes import AccessClass
from access.limits import unlimited
from access.one_line import one_line
from access.principal import Principal

__all__ = ["REMARK_MOST", "lacks", "owner_remark", "remark_of"]

REMARK_MOST: Final = 200
"""Characters of a remark."""
ACTOR_MOST: Final = 90


def remark_of(of_class: AccessClass, needs: str, actor: str) -> str:
    """Return why a request of a class was refused: what would admit its caller (`Policy.needs`), and which caller this
    is. One line of at most REMARK_MOST characters, whatever the rule and the name of the caller."""
    begin, end = f"access denied: {of_class.label} needs ", f"; caller {one_line(actor, ACTOR_MOST)}"
    return f"{begin}{one_line(needs, REMARK_MOST - len(begin) - len(end))}{end}"


def lacks(principal: Principal | None, of_class: AccessClass) -> str:
    """Return what a caller needs beside its proof, if that is why it was refused; behind `Policy.needs`."""
    if principal is None or of_class & unlimited(principal):
        return ""
    return ", for names within its limits" if of_class & principal.classes else ", with a role for it"


def owner_remark(name: str, actor: str) -> str:
    """Return why a request about a broker was refused that is another owner's."""
    return remark_of(AccessClass.BROKER, f"the owner of {name}", actor)
