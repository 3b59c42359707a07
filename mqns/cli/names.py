"""Names in arguments of mqadmin's commands."""

import typer


def not_empty(name: str) -> str:
    """Return the name. Raises BadParameter for an empty one: it is more likely a variable that a script has not set."""
    if not name:
        raise typer.BadParameter("a name is empty")
    return name
