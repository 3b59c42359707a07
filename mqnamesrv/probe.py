"""`python -m mqnamesrv.probe remoting|beat`: the health of this container's process, for Kubernetes.

Options come from the environment, as that process has them. Exit code 0 if it is, 1 if not, 2 for wrong usage; the
reason goes to standard error. Neither asks the store: a restart would not bring it back.

- remoting: listenPort answers a request.
- beat: the rq worker or the scheduler touched beatFile in the last two minutes.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mqnamesrv.remoting_readiness import remoting_answers
from registry.options import load as configuration
from registry.options.catalogue import Options
from worker.jobs.liveness_file import LONGEST_SILENCE_S, silent_s

TIMEOUT_S: Final = 3.0
"""Below the timeoutSeconds of the chart's probes, so that the reason is printed."""


def remoting(options: Options) -> str:
    """Return what is wrong, "" if nothing is."""
    return "" if remoting_answers(options, TIMEOUT_S) else f"port {options.listen_port} does not answer"


def beat(options: Options) -> str:
    """Return what is wrong, "" if nothing is."""
    if not options.beat_file:
        return "beatFile is not set"
    silent = silent_s(options.beat_file)
    return "" if silent <= LONGEST_SILENCE_S else f"{options.beat_file} was not touched for {silent:.0f} s"


def _load(environ: Mapping[str, str]) -> Options:
    """Return the options without the stores' URLs: no probe needs them, and parsing them would double its time."""
    return configuration.load({name: text for name, text in environ.items() if "REDIS" not in name})


PROBES: Final[Mapping[str, Callable[[Options], str]]] = {"remoting": remoting, "beat": beat}


def main(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Return the exit code."""
    if len(words) != 1 or words[0] not in PROBES:
        print(f"usage: python -m mqnamesrv.probe {'|'.join(PROBES)}", file=sys.stderr)
        return 2
    wrong = PROBES[words[0]](_load(environ))
    if wrong:
        print(wrong, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
