"""`python -m mqnamesrv.probe remoting|ready|beat`: the health of this container's process, for Kubernetes.

Options come from the environment, as that process has them. Exit code 0 if it is, 1 if not, 2 for wrong usage; the
reason goes to standard error. None asks the store: a restart would not bring it back.

- remoting: listenPort answers a request.
- ready: and the worker that answers follows changes and watches leases, which it cannot while the store is away.
- beat: the rq worker or the scheduler touched beatFile in the last two minutes.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mqnamesrv.remoting_readiness import remoting_answers, what_is_late
from registry.options import load as configuration
from registry.options.catalogue import Options
from worker.jobs.liveness_file import LONGEST_SILENCE_S, silent_s

TIMEOUT_S: Final = 3.0
"""Below the timeoutSeconds of the chart's probes, so that the reason is printed."""


def remoting(options: Options) -> str:
    """Return what is wrong, "" if nothing is."""
    return "" if remoting_answers(options, TIMEOUT_S) else f"port {options.listen_port} does not answer"


def ready(options: Options) -> str:
    """Return what is late in the worker that answers, "" if nothing is."""
    return what_is_late(options, TIMEOUT_S)


def beat(options: Options) -> str:
    """Return what is wrong, "" if nothing is."""
    if not options.beat_file:
        return "beatFile is not set"
    silent = silent_s(options.beat_file)
    return "" if silent <= LONGEST_SILENCE_S else f"{options.beat_file} was not touched for {silent:.0f} s"


def _load(environ: Mapping[str, str]) -> Options:
    """Return the options without the stores' URLs: no probe needs them, and parsing them would double its time."""
    return configuration.load({name: text for name, text in environ.items() if "REDIS" not in name})


PROBES: Final[Mapping[str, Callable[[Options], str]]] = {"remoting": remoting, "ready": ready, "beat": beat}


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
