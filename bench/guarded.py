"""What rules cost: lookups and registrations where rules admit them by address, and by signature, against the same of a
server without rules (accessProfile=java)."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench.asking import Asking
from bench.closed_loop import Side, loaded, rotate, row
from bench.report import Row
from bench.servers import this_server
from bench.setting import Setting
from bench.workloads import Scene, Workload, scenes, signed_by
from testbed.ports import free_port

KEY: Final = "bench"
SECRET: Final = "of-the-bench-0123456789"
LOOKUPS: Final = ("lookups, 4-broker routes, depth 1", "lookups, 4-broker routes, depth 16")
REGISTRATIONS: Final = (
    "unchanged registration, 10 topics, 200 brokers",
    "unchanged registration, 10 topics, 5,000 brokers, each heartbeat written",
)
"""Workloads without a goal: of a signed one each signature is verified."""


class Rules(msgspec.Struct, frozen=True):
    """The rules of one server, whether its load signs, and the goal of lookups: times the rate without rules."""

    name: str
    options: Mapping[str, str]
    goal: float = 1.0
    signs: bool = False

    def frames(self, plain: Iterable[bytes]) -> Iterable[bytes]:
        """Return these requests as a load sends them under the rules."""
        return signed_by(KEY, SECRET, plain) if self.signs else plain


WITHOUT: Final = Rules("without rules", {"MQNS_ACCESS_PROFILE": "java"})
GUARDED: Final = (
    Rules(
        "rules met by address",
        {"MQNS_ACCESS_PROFILE": "secure", "MQNS_ACCESS_READ": "net signed mtls"},
        goal=0.98,
    ),
    Rules(
        "rules met by signature",
        {
            "MQNS_ACCESS_PROFILE": "secure",
            "MQNS_ACCESS_READ": "signed",
            "MQNS_ACCESS_BROKER": "signed",
        },
        goal=0.97,
        signs=True,
    ),
)
NAMES: Final = tuple(f"{load}, {rules.name}" for load in (*LOOKUPS, *REGISTRATIONS) for rules in GUARDED)


def guarded(wanted: str, setting: Setting) -> list[Row]:
    """Return the rows whose names hold `wanted`; all servers of a load are measured by rotation."""
    rows: list[Row] = []
    for scene in scenes():
        for workload in scene.workloads:
            chosen = [
                rules for rules in GUARDED if wanted in (name := _name(workload, rules)) and name in NAMES
            ]
            rows += _measured(scene, workload, chosen, setting)
    return rows


def _measured(scene: Scene, workload: Workload, chosen: Sequence[Rules], setting: Setting) -> list[Row]:
    if not chosen:
        return []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = [
            stack.enter_context(_side(scene, workload, rules, folder / str(number), setting))
            for number, rules in enumerate((WITHOUT, *chosen))
        ]
        rotate(workload, sides, setting)
    return [
        row(
            _name(workload, rules),
            rules.goal if workload.name in LOOKUPS else None,
            f"{WITHOUT.name}: ",
            *(sides[0], side, setting),
        )
        for rules, side in zip(chosen, sides[1:], strict=True)
    ]


def _name(workload: Workload, rules: Rules) -> str:
    return f"{workload.name}, {rules.name}"


@contextmanager
def _side(scene: Scene, workload: Workload, rules: Rules, folder: Path, setting: Setting) -> Iterator[Side]:
    """A server with these rules that knows the scene's brokers, and its load."""
    folder.mkdir()
    options = {**rules.options, "MQNS_ACCESS_FILE": str(access_file(folder))}
    core = setting.server_core
    with (
        this_server(free_port(), folder / "data", core=core, options=options) as server,
        Asking(server.port) as asking,
    ):
        asking.ask_all(rules.frames(scene.prepare()))
        file = folder / "frames"
        file.write_bytes(b"".join(rules.frames(workload.frames())))
        with loaded(server, workload, file, setting, setting.our_warm_up_s) as side:
            yield side


def access_file(folder: Path) -> Path:
    """Write the file of one broker's key, which lookups may have too."""
    file, secret = folder / "access.toml", folder / "key"
    secret.write_text(SECRET)
    file.write_text(
        '[principals.bench]\nroles = ["broker"]\n'
        f'keys = [{{ accessKey = "{KEY}", secrets = [{{ file = "{secret.name}" }}] }}]\n'
    )
    for path in (file, secret):
        path.chmod(0o600)
    return file
