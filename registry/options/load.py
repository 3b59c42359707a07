"""A process's options, read from its environment and the properties file that it names."""

from collections.abc import Mapping
from pathlib import Path

from registry.options.catalogue import OPTIONS_VARIABLE, Options, from_env
from registry.options.without_effect import CONFIG_FILE_VARIABLE, without_effect
from rocketmq_remoting.properties import parse_properties


def read_properties(path: str | Path) -> dict[str, str]:
    """Return the entries of a Java properties file; OSError if unreadable, PropertiesError for a bad escape.

    UTF-8, else Latin-1, which is what Java reads.
    """
    content = Path(path).read_bytes()
    try:
        return parse_properties(content.decode())
    except UnicodeDecodeError:
        return parse_properties(content.decode("latin-1"))


def load(environ: Mapping[str, str]) -> Options:
    """Return what a supervisor resolved (MQNS_OPTIONS), else MQNS_CONFIG_FILE under the environment's variables."""
    return from_env(environ, _file(environ))


def warnings(environ: Mapping[str, str]) -> list[str]:
    """Return what has no effect, a sentence each; nothing where a supervisor resolved the options, which logs it."""
    return [] if OPTIONS_VARIABLE in environ else without_effect(_file(environ), environ)


def _file(environ: Mapping[str, str]) -> dict[str, str]:
    path = environ.get(CONFIG_FILE_VARIABLE, "")
    return {} if OPTIONS_VARIABLE in environ or not path else read_properties(path)
