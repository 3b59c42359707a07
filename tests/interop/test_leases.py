"""Frozen brokers (test_master_and_slaves.py): listed as long as their lease runs, and not a second longer.

Runs last, so that the two minutes of a lease pass while other tests run."""

import pytest

from testbed.rocketmq.servers import Kind
from tests.interop.watch import Watch

LEASE_S = 120
PERIOD_S = 10
"""Between two registrations; the lease counts from the last of them."""
SCAN_S = {"ours": 0, "java": 5}
"""How long after its end a server may take to notice."""
SLACK_S = 2


@pytest.mark.parametrize("name", ["group-4-9-7", "group-5-5-0", "group-5-5-0-enforced"])
def test_a_frozen_broker_goes_at_the_end_of_its_lease(
    name: str, watches: dict[str, Watch], kind: Kind
) -> None:
    latest = LEASE_S + SCAN_S[kind] + SLACK_S
    assert name in watches, "to be run together with test_master_and_slaves.py"
    watch = watches[name]
    watch.stop(after_s=latest)
    assert watch.gone_after_s is not None, f"still listed after {latest} s"
    print(f"{name}: gone {watch.gone_after_s:.1f} s after it froze")
    assert watch.gone_after_s > LEASE_S - PERIOD_S - SLACK_S
