"""identityConflicts=refuse: what a living member has, no other address takes; all else is as without it."""

from itertools import count
from typing import Any

import pytest
import redis as redis_py

from registry import refused_claims
from registry.errors import IdentityConflict, NotOwner
from registry.ownership import Claimant, ReportedRefusals
from registry.refused_claims import RECENT_MS, Claimed
from registry.registration.cache import RegistrationCache
from registry.registration.register import register
from tests.registry.brokers import address, origin, registration
from tests.registry.namespace import Namespace

ELSEWHERE = "127.200.0.9:10911"
HERE = "host:127.0.0.1"


def exclusive(**more: Any) -> Claimant:
    return Claimant(HERE, exclusive=True, reported=ReportedRefusals(), **more)


def refused(ns: Namespace, *args: Any, by: Claimant | None = None, **kwargs: Any) -> str:
    """Return the error of a registration, which leaves tables and leases as they were."""
    before = ns.store.dump(ns.keys.broker("b1")), ns.store.zrange(ns.keys.leases, 0, -1, withscores=True)
    with pytest.raises(IdentityConflict) as error:
        ns.register(*args, by=by or exclusive(), **kwargs)
    assert (
        ns.store.dump(ns.keys.broker("b1")),
        ns.store.zrange(ns.keys.leases, 0, -1, withscores=True),
    ) == before
    return str(error.value)


def test_a_second_address_of_an_id_is_refused_and_reported(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.new_entries()
    assert refused(ns, "b1", 0, at=ELSEWHERE) == (
        f"id 0 of broker 'b1' is taken: {address('b1', 0)} of cluster 'c1' lives there (identityConflicts=refuse)"
    )
    (entry,) = ns.new_entries()
    assert (entry.kind, entry.cause) == ("conflict_seen", "two_addresses")
    assert entry.fields["action"] == "refused"
    assert entry.fields["addr"] == ELSEWHERE
    assert address("b1", 0) in entry.fields["holder"]


def test_a_name_stays_in_the_cluster_of_its_living_members(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.new_entries()
    assert refused(ns, "b1", 1, cluster="c2").startswith(
        f"broker 'b1' is of another cluster than 'c2': there {address('b1', 0)} of cluster 'c1' lives"
    )
    assert ns.new_causes() == ["conflict_seen two_clusters"]


def test_a_refusal_is_reported_once_a_minute(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.new_entries()
    by = exclusive()
    for _ in range(5):
        refused(ns, "b1", 0, at=ELSEWHERE, by=by)
    assert len(ns.new_entries()) == 1


def test_the_doctor_can_name_what_is_refused_for_five_minutes(ns: Namespace) -> None:
    ns.register("b1", 0)
    for _ in range(2):
        refused(ns, "b1", 0, at=ELSEWHERE)
    now = ns.now_ms()
    (claim,) = ns.run(refused_claims.read(ns.keys, now))
    assert claim.claimed == Claimed("c1", "b1", "0", ELSEWHERE, "two_addresses", address("b1", 0))
    assert now - 60_000 < claim.at_ms <= now
    assert ns.run(refused_claims.read(ns.keys, now + RECENT_MS + 1)) == ()
    assert 0 < ns.store.pttl(ns.keys.refused) <= 3_600_000
    ns.store.zadd(ns.keys.refused, {"no claim": now})
    assert len(ns.run(refused_claims.read(ns.keys, now))) == 1


def test_no_more_claims_are_noted_than_a_doctor_names(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.store.zadd(ns.keys.refused, {f"claim {number}": ns.now_ms() for number in range(1_000)})
    refused(ns, "b1", 0, at=ELSEWHERE)
    assert ns.store.zcard(ns.keys.refused) == 1_000
    assert ns.new_causes()[-1] == "conflict_seen two_addresses"


def test_the_place_is_free_once_its_lease_has_ended_or_its_member_left(ns: Namespace) -> None:
    ns.register("b1", 0)
    refused(ns, "b1", 0, at=ELSEWHERE)
    ns.lapse("b1", 0)
    ns.register("b1", 0, at=ELSEWHERE, by=exclusive())
    assert ns.addrs("b1") == {0: ELSEWHERE}
    ns.unregister("b1", 0, at=ELSEWHERE)
    ns.register("b1", 0, cluster="c2", by=exclusive())
    assert ns.addrs("b1") == {0: address("b1", 0)}


def test_a_member_renews_changes_and_moves_within_its_group(ns: Namespace) -> None:
    for number in (0, 1):
        ns.register("b1", number, by=exclusive())
    ns.register("b1", 0, ("T3", "T4"), version=2, by=exclusive())
    assert ns.topics("b1").keys() >= {"T3", "T4"}
    ns.unregister("b1", 0)
    ns.register("b1", 0, ("T3", "T4"), at=address("b1", 1), version=2, by=exclusive())
    assert ns.addrs("b1") == {0: address("b1", 1)}


def test_an_address_takes_its_own_name_to_another_cluster(ns: Namespace) -> None:
    """It was started again with another configuration."""
    ns.register("b1", 0)
    ns.register("b1", 0, cluster="c2", by=exclusive())
    assert ns.addrs("b1") == {0: address("b1", 0)}


def test_a_master_that_a_controller_elected_takes_the_id_by_its_state_version(ns: Namespace) -> None:
    ns.register("b1", 0, state=1)
    refused(ns, "b1", 0, at=ELSEWHERE, state=1)
    ns.register("b1", 0, at=ELSEWHERE, state=2, by=exclusive())
    assert ns.addrs("b1") == {0: ELSEWHERE}


def test_what_was_there_before_the_option_stays(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.register("b1", 1, cluster="c2")
    ns.register("b1", 1, cluster="c2", version=2, by=exclusive())
    assert ns.addrs("b1").keys() == {0, 1}


def test_owners_are_judged_first_and_a_principal_claims_its_brokers_from_hosts(ns: Namespace) -> None:
    ns.register("b1", 0, by=Claimant(HERE, guard=True))
    other = Claimant("host:127.0.0.2", guard=True, exclusive=True)
    with pytest.raises(NotOwner):
        ns.register("b1", 0, at=ELSEWHERE, by=other)
    ns.register("b1", 0, at=ELSEWHERE, by=Claimant("principal:p", guard=True, exclusive=True))
    assert ns.addrs("b1") == {0: ELSEWHERE}


def test_a_large_first_registration_is_refused_too(ns: Namespace) -> None:
    ns.register("b1", 0)
    refused(ns, "b1", 0, [f"T{number}" for number in range(3_000)], at=ELSEWHERE)
    assert not ns.store.exists(ns.keys.pending("b1"))


def test_without_the_option_the_later_one_wins(ns: Namespace) -> None:
    ns.register("b1", 0)
    ns.register("b1", 0, at=ELSEWHERE)
    assert ns.addrs("b1") == {0: ELSEWHERE}


def test_the_short_cuts_of_one_that_lost_its_place_lead_to_the_refusal(redis: redis_py.Redis) -> None:
    """Its process has cached table, signature and renewal; the store's generation has moved."""
    seconds = count(step=10)
    ns, cache = Namespace(redis), RegistrationCache(lambda: float(next(seconds)))

    def again(version: int, at: str) -> Any:
        body = registration("b1", 0, version=version, at=at)
        by = exclusive()
        return ns.run(register(ns.keys, body, origin(), registration_cache=cache, claimant=by))

    first, second = address("b1", 0), ELSEWHERE
    again(1, first)
    assert again(1, first).renewal is not None
    ns.register("b1", 0, at=second)  # by a worker without the option
    for version in (1, 2):
        with pytest.raises(IdentityConflict):
            again(version, first)
    assert ns.addrs("b1") == {0: second}
