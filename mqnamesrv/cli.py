"""The command `mqnamesrv`: Java's arguments, messages and exit codes (RocketMQ NamesrvStartup, 5.5.0)."""

import atexit
import gc
import getopt
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

import msgspec

from access import start_check
from mqnamesrv import size_command
from mqnamesrv.listeners import PortUnavailable
from mqnamesrv.shared_settings import KVFileInvalid, export_kv
from mqnamesrv.store import StoreFailed, opened
from mqnamesrv.supervisor import StartFailed, Stopped
from registry.errors import RegistryError
from registry.keys import Keys
from registry.options.catalogue import InvalidOption, Options, for_print, given_settings
from registry.options.load import read_properties, resolved
from registry.options.without_effect import CONFIG_FILE_VARIABLE
from registry.store.connect import connect
from rocketmq_remoting.properties import PropertiesError
from worker.logs import log_lines
from worker.logs.log_lines import one_line
from worker.logs.options_log import log_access, log_without_effect

USAGE = """\
usage: mqnamesrv [-c <arg>] [-h] [-n <arg>] [-p]
 -c,--configFile <arg>    Name server config properties file
 -h,--help                Print help
 -n,--namesrvAddr <arg>   Name server address list, eg: '192.168.0.1:9876;192.168.0.2:9876'
 -p,--printConfigItem     Print all config items
    --exportKv <file>     Write all KV config of the store to a kvConfig.json
    --version             Print the versions of this and of what it runs with

mqnamesrv size --brokers N --topics N --clients N prints what a name server for so many needs (docs/scale.md).
Options are set in that file or as variables, such as MQNS_LISTEN_PORT; docs/options.md lists them.
A first start on this machine alone, without a store:
  ROCKETMQ_HOME=$HOME MQNS_BIND_ADDRESS=127.0.0.1 mqnamesrv
HTTP listens on loopback; MQNS_HTTP_BIND_ADDRESS=0.0.0.0 lets other machines reach it."""
SHORT = "c:hn:p"
LONG = ["configFile=", "help", "namesrvAddr=", "printConfigItem", "exportKv=", "version"]
BESIDE = ("redis", "rq", "gunicorn")
"""Distributions whose versions matter where something is reported."""
OK, WRONG_USAGE, NO_HOME, FAILED = 0, 1, 254, 255
NO_HOME_TEXT = (
    "Please set the ROCKETMQ_HOME variable in your environment "
    "to match the location of the RocketMQ installation"
)
FAILURES = (
    InvalidOption,
    KVFileInvalid,
    OSError,
    PortUnavailable,
    PropertiesError,
    RegistryError,
    StartFailed,
    StoreFailed,
)


def main() -> None:
    """Run the console script."""
    _open_closed_files()
    atexit.register(gc.freeze)  # no last collection: the end of the process frees all
    log_lines.to_standard_error(Options())
    sys.exit(run(sys.argv[1:], os.environ))


def _open_closed_files() -> None:
    """Have /dev/null where input or output is closed: a socket would get its number."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def run(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Return the exit code; Java's output goes to standard output, other errors to standard error."""
    if argv[:1] == [size_command.NAME]:
        return size_command.run(argv[1:])
    try:
        pairs, _ = getopt.gnu_getopt(list(argv), SHORT, LONG)
    except getopt.GetoptError as error:
        print(*_java_s_complaint(error), sep="\n", file=sys.stderr)
        print(USAGE)
        return WRONG_USAGE
    arguments = {_long(name): value for name, value in pairs}
    if "--help" in arguments:
        print(USAGE)
        return OK
    if "--version" in arguments:
        beside = "".join(f", {name} {version(name)}" for name in BESIDE)
        print(f"mqnamesrv {version('redis-namesrv')}, Python {platform.python_version()}{beside}")
        return OK
    try:
        return _run(arguments, env)
    except FAILURES as error:
        print(f"mqnamesrv: {one_line(str(error))}", file=sys.stderr)
        return FAILED
    except Stopped:
        return OK


def _run(arguments: Mapping[str, str], env: Mapping[str, str]) -> int:
    for name in ("--configFile", "--exportKv"):
        if arguments.get(name) == "":
            raise InvalidOption(f"{name} names no file")
    path = arguments.get("--configFile") or env.get(CONFIG_FILE_VARIABLE, "")
    file, cli = (read_properties(path), {"configStorePath": path}) if path else ({}, {})
    options = resolved(file, env, cli)
    log_lines.to_standard_error(options)
    if path:
        print(f"load config properties file OK, {path}", flush=True)
    log_without_effect(options.without_effect)
    if "--printConfigItem" in arguments:
        print("\n".join(f"{key}={value}" for key, value in for_print(options)), flush=True)
        return _refused(options) or OK
    options = _absolute(options)
    Keys(options.namespace)  # refuses a name that cannot be one
    if target := arguments.get("--exportKv"):
        with (
            opened(options.redis_url, Path(options.data_dir)) as url,
            connect(url, options.namespace) as store,
        ):
            print(f"{export_kv(store, options.namespace, Path(target))} KV namespaces written to {target}")
        return OK
    if not options.rocketmq_home:
        print(NO_HOME_TEXT)
        return NO_HOME
    if code := _refused(options):
        return code
    log_access(start_check.warnings(options))
    from mqnamesrv.serve import serve  # only now: it imports all that its children need

    options = msgspec.structs.replace(options, rewritten_file=path)
    serve(options, given_settings(file, env, cli), Path(path) if path else None)
    return OK


def _refused(options: Options) -> int:
    """Return the exit code of a start that rules of access forbid, and say why; 0 of one that they do not."""
    reason = start_check.refusal(options)
    if reason is None:
        return OK
    print(f"mqnamesrv: {one_line(reason)}", file=sys.stderr)
    return start_check.EXIT_CODE


def _long(name: str) -> str:
    """Return the long name of an argument: `--configFile` for `-c`."""
    if name.startswith("--"):
        return name
    return next(f"--{long.rstrip('=')}" for long in LONG if long.startswith(name[1]))


def _java_s_complaint(error: getopt.GetoptError) -> list[str]:
    """Return Java's line, and another one if a known option is near."""
    if "requires argument" in error.msg:
        return [f"Missing argument for option: {error.opt}"]
    option = one_line(error.opt)
    near = get_close_matches(option, [name.rstrip("=") for name in LONG], n=1)
    advice = [f"Did you mean --{name}?" for name in near]
    return [f"Unrecognized option: {'--' if len(option) > 1 else '-'}{option}", *advice]


def _absolute(options: Options) -> Options:
    """Return options with absolute paths, because the children run in another folder."""
    paths = {
        name: str(Path(value).absolute())
        for name in options.__struct_fields__
        if name.endswith(("_path", "_file", "_dir"))
        and name != "config_store_path"
        and (value := getattr(options, name))
    }
    return msgspec.structs.replace(options, **paths)
