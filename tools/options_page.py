"""Writes docs/options.md from the catalogue: `python -m tools.options_page`."""

from pathlib import Path

from registry.options.catalogue import CATALOGUE, Group, Option, text_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """\
# Options

Every option of the server: what it does, where it is set, when it takes effect. Written by `make generate`; a test
compares it with the catalogue.

Defaults < properties file (`mqnamesrv -c FILE`, Java's own format and keys) < environment. The command line sets no
option: `-n` is accepted, as by Java's, and has no effect. Besides the variables named here, `REDIS_URL`,
`RQ_REDIS_URL`, `ROCKETMQ_HOME` and `ROCKETMQ_SERIALIZE_TYPE` are read. What `mqadmin updateNamesrvConfig` (318) sets is
shared by all workers through Redis and outlives restarts; a start writes a value there only if it differs from what the
last start gave. It knows Java's options only, takes any number of them as Java does, and lists it; one that is out of
range (a port over 65535, a negative number, a capacity below 1) is never in force, is not written to the `-c` file, and
a worker logs it. A start logs which variables `MQNS_…` and which keys of the file are no option, which numbers of the
file it ignores, and which flags there are neither true nor false.

[`GET /v1/options`](http-api.md#options) and [`mqns settings`](cli.md#settings) show every option of a running server:
its value, where that comes from, and what had no effect.

`mqnamesrv -h` lists its arguments, `--version` prints which releases of this, Python and the libraries of Redis, RQ and
gunicorn run. Exit codes are Java's: 0 when it ends as asked, 1 after wrong usage, 254 without `rocketmqHome`, 255 where
a start fails, with one line that says why; 253 is ours, where [rules of access](access.md) are open by
accident, closed to all or none, or the access file is wrong (`-p` prints the options then, and ends so, too).

Effect: **live** = a new value takes effect at once in every worker; **start** = read when a process starts (318
changes the listing only; `restart` in `mqns settings`); **none** = accepted, printed and listed, for the reason given
(`listed` there).

Give all servers of a namespace the same options. Where they differ, nothing breaks, but chance decides: which of the
time-outs a lease has, whether many that end at once are held (`expiryHoldMillis`), how much of the stream is kept.
"""
TITLES: dict[Group, str] = {
    "namesrv": "Java's NamesrvConfig",
    "netty_server": "Java's NettyServerConfig",
    "tls": "Java's TLS properties",
    "own": "Our own",
    "netty_client": "Java's NettyClientConfig",
}


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_section(group) for group in TITLES)


def _section(group: Group) -> str:
    rows = "".join(_row(option) for option in CATALOGUE if option.group == group)
    return (
        f"\n## {TITLES[group]}\n\n| option | variable | default | effect | |\n|---|---|---|---|---|\n{rows}"
    )


def _row(option: Option) -> str:
    default = f"`{text_of(option.default)}`" if option.default != "" else ""
    effect = "none" if option.effect == "listed" else option.effect
    return f"| `{option.key}` | `{option.env}` | {default} | {effect} | {option.why} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
