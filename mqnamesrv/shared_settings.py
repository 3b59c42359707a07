"""Settings and KV in Redis, for the supervisor: written at the start, changes of 318 written back to the file."""

import logging
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec
import redis

from mqnamesrv.config_file import rewrite
from registry import kv, settings
from registry.drivers import run
from registry.errors import RegistryError
from registry.keys import Keys
from registry.options.catalogue import Options, listing, out_of_range, overlay
from registry.plans import Origin
from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.json_decoding import decode_json

log = logging.getLogger(__name__)


class KVConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    """kvConfig.json: namespace -> key -> value (RocketMQ KVConfigSerializeWrapper)."""

    config_table: dict[str, dict[str, str]] = {}


class KVFileInvalid(ValueError):
    """kvConfig.json exists but cannot be read; the text names it."""


class SharedSettings:
    """The settings of all processes of the namespace."""

    def __init__(self, store: redis.Redis, options: Options, config_file: Path | None) -> None:
        self._store = store
        self._keys = Keys(options.namespace)
        self._options = options
        self._config_file = config_file
        self._origin = Origin(f"start-{secrets.token_hex(4)}", "cli:mqnamesrv")
        self._announced: dict[str, str] = {}
        self._failure = ""
        self._unread = False

    def announce(self, given: Mapping[str, str]) -> None:
        """Write the options of this start to Redis; later changes are found by comparison with these."""
        self._announced = run(settings.announce_start(self._keys, given, self._origin), self._store)

    def import_kv(self) -> bool:
        """Import kvConfig.json where there is one and the store has no KV yet. Raises KVFileInvalid."""
        table = read_kv_file(Path(self._options.kv_config_path))
        return bool(table) and run(kv.import_table(self._keys, table, self._origin), self._store)

    def follow(self) -> None:
        """Rewrite the -c file, where there is one, when settings have changed; a failure is reported once, and its
        end."""
        file = self._config_file
        if file is None:
            return
        try:
            shared = run(settings.read(self._keys), self._store)
            if self._unread:
                log.warning("settings are read again")
                self._unread = False
            if shared != self._announced:
                self._announced = shared  # also when the file cannot be written: one try for each change
                self._write(file, shared)
        except (RegistryError, redis.RedisError) as error:
            self._unread = True
            if self._is_new(error):
                log.warning("settings cannot be read: %s; retries by itself", error)
        except OSError as error:
            if self._is_new(error):
                log.warning(
                    "%s cannot be written: %s; correct that, the next change of settings tries again",
                    file,
                    error,
                )
        else:
            self._failure = ""

    def _write(self, file: Path, shared: Mapping[str, str]) -> None:
        usable = {key: text for key, text in shared.items() if key not in out_of_range(shared)}
        rewrite(file, dict(listing(overlay(self._options, usable))))

    def _is_new(self, error: Exception) -> bool:
        before, self._failure = self._failure, str(error)
        return self._failure != before


def read_kv_file(path: Path) -> dict[str, dict[str, str]]:
    """Return the tables of a kvConfig.json, empty when there is none (KVConfigManager.load). Raises KVFileInvalid."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    if not content.strip():
        return {}
    try:
        return decode_json(content, KVConfigFile).config_table
    except BodyError as error:
        raise KVFileInvalid(f"{path}: {error}") from error


def export_kv(store: redis.Redis, namespace: str, path: Path) -> int:
    """Write all KV as a kvConfig.json that Java's name server reads, and return the number of namespaces."""
    table = run(kv.export_table(Keys(namespace)), store)
    document = msgspec.json.format(msgspec.json.encode(KVConfigFile(table)), indent=2)
    path.write_bytes(document + b"\n")
    return len(table)
