"""Commands as texts show them, ready for a shell: a name of a peer is a word of its own, whatever it is called."""

import shlex

__all__ = ["arguments", "command_line"]


def command_line(*words: str) -> str:
    """Return these words as a shell reads them: each one is quoted where that is needed."""
    return shlex.join(words)


def arguments(*names: str) -> tuple[str, ...]:
    """Return the last arguments of a command: where one begins as an option does, they stand behind `--`."""
    return ("--", *names) if any(name.startswith("-") for name in names) else names
