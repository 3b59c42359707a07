"""`python -m launcher.probe remoting|beat`: whether the process of this container is well, for probes of Kubernetes.

Options come from the environment, as that process has them. Exit code 0 if it is, 1 if not, 2 for wrong usage; the
reason goes to standard error. Neither asks the store: a restart would not bring it back.

- remoting: listenPort answers a request.
- beat: the rq worker or the scheduler touched beatFile in the last two minutes.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from launcher.remoting_readiness import remoting_answers
from registry import configuration
from registry.options import Options
from worker.beat import LONGEST_SILENCE_S, silent_s

TIMEOUT_S: Final = 3.0
"""Below the timeoutSeconds of the chart's probes, so that the reason is told."""


def remoting(options: Options) -> str:
    """-> what is wrong; empty if nothing is."""
    return "" if remoting_answers(options, TIMEOUT_S) else f"port {options.listen_port} does not answer"


def beat(options: Options) -> str:
    """-> what is wrong; empty if nothing is."""
    if not options.beat_file:
        return "beatFile is not set"
    silent = silent_s(options.beat_file)
    return "" if silent <= LONGEST_SILENCE_S else f"no beat of {options.beat_file} for {silent:.0f} s"


def _load(environ: Mapping[str, str]) -> Options:
    """All but where the stores are: no probe asks them, and the library that reads their URLs costs as much again."""
    return configuration.load({name: text for name, text in environ.items() if "REDIS" not in name})


PROBES: Final[Mapping[str, Callable[[Options], str]]] = {"remoting": remoting, "beat": beat}


def main(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """-> the exit code."""
    if len(words) != 1 or words[0] not in PROBES:
        print(f"usage: python -m launcher.probe {'|'.join(PROBES)}", file=sys.stderr)
        return 2
    wrong = PROBES[words[0]](_load(environ))
    if wrong:
        print(wrong, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
