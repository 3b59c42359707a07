"""A mode of the suite in which every follower of the event stream lags: `--follower-delay SECONDS`.

Workers then see changes of other workers late, as on a busy machine; a test that does not wait for them fails always
instead of now and then. A pytest plugin; it reaches the processes that tests start over PYTHONPATH, and those with an
environment of their own by `testbed.delayed_reads.inherited`."""

import os

import pytest

from testbed.delayed_reads import STARTUP, VARIABLE, delay_reads


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--follower-delay`."""
    parser.addoption(
        "--follower-delay", metavar="SECONDS", help="delay what workers read from the event stream"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Delay this process and those that it starts."""
    if delay_s := config.getoption("--follower-delay"):
        os.environ[VARIABLE] = delay_s
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(STARTUP), os.environ.get("PYTHONPATH"))))
        delay_reads()
