"""`python -m tests.fuzz.run [RUNS] [TARGET …]`: coverage-guided fuzzing with atheris.

RUNS (10 million) are shared by the targets (all of them), one after another. What reaches new code is kept in
build/fuzz; at the end the smallest of it takes the place of tests/fuzz/corpus, which `test_corpus.py` replays. An input
for which something does not hold stays in build/fuzz/failures, and the command fails.
`python -m tests.fuzz.run --one TARGET …` is libFuzzer itself, with its options. `tools/sanitize.sh` preloads
the one that has AddressSanitizer in it."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

if "_with_fuzzer" in os.environ.get("LD_PRELOAD", ""):
    import atheris_no_libfuzzer as atheris
else:
    import atheris

with atheris.instrument_imports(
    include=[
        *("tests.fuzz", "rocketmq_remoting", "worker", "access", "api", "registry.options"),
        *("javaproperties", "tomllib", "ipaddress"),
    ],
    enable_loader_override=False,
):
    from tests.fuzz.targets import TARGETS, Target

from tests.fuzz.seeds import seeds

CORPUS = Path(__file__).with_name("corpus")
WORK = Path("build/fuzz")
LARGEST = 4096
KEPT_LARGEST = 1024
KEPT_FILES = 20
RUNS = 10_000_000
TRACED = (
    *("/rocketmq_remoting/", "/proxy_protocol.py", "/cached_requests.py"),
    *("/access/", "/api/", "/worker/guard.py", "/trusted_proxies.py", "/options/networks.py"),
    "/tests/fuzz/",
)
Jump: TypeAlias = tuple[str, int, int]


def fuzz_one(target: str, options: list[str]) -> None:
    """libFuzzer in this process, which it ends."""
    atheris.Setup([sys.argv[0], *options], TARGETS[target])
    atheris.Fuzz()


def fuzz(target: str, runs: int) -> int:
    """Run it in a process of its own and keep the corpus; how many inputs it really ran."""
    corpus, failures = WORK / target, WORK / "failures"
    corpus.mkdir(parents=True, exist_ok=True)
    failures.mkdir(exist_ok=True)
    for i, seed in enumerate(seeds(target, LARGEST)):
        (corpus / f"seed-{i}").write_bytes(seed)
    said = _libfuzzer(
        target,
        f"-runs={runs}",
        f"-max_len={LARGEST}",
        "-timeout=10",
        "-rss_limit_mb=1024",
        f"-artifact_prefix={failures}/{target}-",
        str(corpus),
        str(CORPUS / target),
    )
    if "Done " not in said:
        print(said[-6000:])
        raise SystemExit(f"{target} failed; its input is in {failures}")
    return int(re.findall(r"Done (\d+) runs", said)[-1])


def keep(target: str) -> None:
    """The smallest inputs that together reach what all of them reach become the corpus, at most KEPT_FILES."""
    paths = (*(WORK / target).iterdir(), *(CORPUS / target).iterdir())
    inputs = {path.read_bytes() for path in paths if path.stat().st_size <= KEPT_LARGEST}
    reached: set[Jump] = set()
    chosen: list[tuple[int, bytes]] = []
    for content in sorted(inputs, key=lambda content: (len(content), content)):
        new = jumps(TARGETS[target], content) - reached
        if new:
            reached |= new
            chosen.append((len(new), content))
    for path in (CORPUS / target).iterdir():
        path.unlink()
    for i, (_, content) in enumerate(sorted(chosen, reverse=True)[:KEPT_FILES]):
        (CORPUS / target / f"{i:02}").write_bytes(content)


def jumps(target: Target, content: bytes) -> set[Jump]:
    """From which line to which the target goes with this input."""
    seen: set[Jump] = set()
    last: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not any(part in file for part in TRACED):
            return None
        line = frame.f_lineno
        seen.add((file, last.get(id(frame), 0), line))
        last[id(frame)] = line
        return trace

    sys.settrace(trace)
    try:
        target(content)
    finally:
        sys.settrace(None)
    return seen


def _libfuzzer(target: str, *options: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz.run", "--one", target, *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def main(arguments: list[str]) -> None:
    logging.disable()  # each refusal is a line
    if arguments[:1] == ["--one"]:
        fuzz_one(arguments[1], arguments[2:])
    total = int(arguments[0]) if arguments else RUNS
    chosen = arguments[1:] or list(TARGETS)
    ran = 0
    for target in chosen:
        CORPUS.joinpath(target).mkdir(parents=True, exist_ok=True)
        done = fuzz(target, -(-total // len(chosen)))
        keep(target)
        ran += done
        print(f"{target:24} {done:>10} inputs, {len(list((WORK / target).iterdir()))} kept", flush=True)
    print(f"{ran} inputs, nothing found")


if __name__ == "__main__":
    main(sys.argv[1:])
