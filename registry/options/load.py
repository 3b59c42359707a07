"""A process's options, read from its environment and the properties file that it names."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from registry.options.catalogue import OPTIONS_VARIABLE, Options, from_env, resolve
from registry.options.without_effect import CONFIG_FILE_VARIABLE, without_effect
from rocketmq_remoting.properties import PropertiesError, parse_properties


def read_properties(path: str | Path) -> dict[str, str]:
    """Return the entries of a Java properties file; OSError if unreadable, PropertiesError for a bad escape.

    UTF-8, else Latin-1, which is what Java reads.
    """
    content = Path(path).read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    try:
        return parse_properties(text)
    except PropertiesError as error:
        raise PropertiesError(f"{path}: {error}") from None


def load(environ: Mapping[str, str]) -> Options:
    """Return what a supervisor resolved (MQNS_OPTIONS), else MQNS_CONFIG_FILE under the environment's variables."""
    if (handed_over := from_env(environ)) is not None:
        return handed_over
    path = environ.get(CONFIG_FILE_VARIABLE, "")
    return resolved(read_properties(path) if path else {}, environ)


def resolved(
    file: Mapping[str, str], environ: Mapping[str, str], cli: Mapping[str, str] | None = None
) -> Options:
    """Return the options of `resolve`, with what was given and has no effect. Raises InvalidOption."""
    options = resolve(file, environ, cli)
    return msgspec.structs.replace(options, without_effect=tuple(without_effect(file, environ)))


def warnings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what has no effect, a sentence each; nothing where a supervisor resolved the options, which logs it."""
    return () if environ.get(OPTIONS_VARIABLE) else load(environ).without_effect
