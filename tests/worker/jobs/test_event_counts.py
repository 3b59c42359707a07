"""Which events are counted as what."""

from collections.abc import Mapping

from metrics import catalogue as metrics
from metrics.counts import Observed
from registry.events.entry import Event, EventKind
from worker.jobs.event_counts import EventCounts

NOW_MS = 1_767_225_600_000


def event(kind: str, cause: str, at_ms: int = NOW_MS, **fields: object) -> Event:
    return Event.of(f"{at_ms}-1", {"kind": kind, "cause": cause, **{k: str(v) for k, v in fields.items()}})


def values(counts: EventCounts) -> Mapping[tuple[str, ...], float]:
    """Return what is not 0, by the name of the metric and its labels."""
    found: dict[tuple[str, ...], float] = {}
    for read in counts.read():
        value = read.histogram.sum if isinstance(read, Observed) else read.value
        if value:
            found[read.metric.name, *read.labels] = value
    return found


def counted(*events: Event) -> Mapping[tuple[str, ...], float]:
    counts = EventCounts()
    for one in events:
        counts.observe(one)
    return values(counts)


def test_changes_by_kind_and_cause() -> None:
    group = (event("topics_changed", "register"), event("topics_changed", "acting"))
    assert counted(*group) == {
        ("route_changes_total", "topics_changed", "register"): 1,
        ("route_changes_total", "topics_changed", "acting"): 1,
    }


def test_checkpoints_are_no_changes() -> None:
    assert counted(event("checkpoint", "start")) == {}


def test_an_expired_member() -> None:
    removed = event("broker_removed", "expired", effective_ms=NOW_MS - 4_000, last_seen_ms=NOW_MS - 124_000)
    assert counted(removed) == {
        ("route_changes_total", "broker_removed", "expired"): 1,
        ("unregistration_events_total", "expired"): 1,
        ("detection_latency_seconds", "expired"): 120.0,
        ("expiry_record_delay_seconds",): 4.0,
    }


def test_a_member_whose_connection_was_lost() -> None:
    found = counted(event("broker_removed", "lost", closed_ms=NOW_MS - 700, last_seen_ms=NOW_MS - 20_000))
    assert found["detection_latency_seconds", "lost"] == 0.7
    assert ("expiry_record_delay_seconds",) not in found


def test_a_member_that_left_has_no_latency() -> None:
    found = counted(event("broker_removed", "unregistered", last_seen_ms=NOW_MS - 20_000))
    assert found["unregistration_events_total", "unregistered"] == 1
    assert not [key for key in found if key[0].startswith("detection")]


def test_conflicts() -> None:
    found = counted(
        event("conflict_seen", "two_names", count=3),
        event("conflict_seen", "state_version"),
        event("conflict_seen", "stale_unregister"),
        event("conflict_seen", "ownership"),
        event("broker_registered", "takeover"),
    )
    assert {key[1]: value for key, value in found.items() if key[0] == "identity_conflicts_total"} == {
        "two_names": 3,
        "state_version": 1,
        "stale_unregister": 1,
        "ownership": 1,
        "takeover": 1,
    }
    assert found["stale_unregister_fenced_total",] == 1


def test_acts_of_operators() -> None:
    """Each once, in however many entries it is; what others do is none."""
    found = counted(
        event("topics_changed", "wipe", actor="wire:127.0.0.1:1", op="op1"),
        event("topics_changed", "register", actor="wire:127.0.0.1:2", op="op2"),
        event("topics_changed", "wipe", actor="wire:127.0.0.1:1", op="op1"),
        event("topics_changed", "wipe", actor="wire:127.0.0.1:1", op="op3"),
        event("drain_changed", "drain", actor="http:127.0.0.1:2", op="op4"),
        event("kv_changed", "put", actor="cli:me", op="op5"),
        event("settings_changed", "update"),
        event("drain_changed", "drain_end", actor="worker:1", op="op6"),
    )
    assert {key[1:]: value for key, value in found.items() if key[0] == "admin_writes_total"} == {
        ("wipe", "wire"): 2,
        ("drain", "http"): 1,
        ("kv_put", "other"): 1,
        ("settings_update", "other"): 1,
    }


def test_each_act_of_an_operator_is_an_entry_that_there_is() -> None:
    assert all(cause in metrics.CAUSES[kind] for kind, cause in metrics.ADMIN_OPS)


def test_what_a_later_release_or_another_hand_wrote() -> None:
    found = counted(
        event("news", "of a later release"),
        event("kv_changed", "<script>"),
        event("broker_removed", "expired", effective_ms="soon", last_seen_ms="9" * 40),
    )
    assert found["route_changes_total", "other", "other"] == 1
    assert found["route_changes_total", "kv_changed", "other"] == 1
    assert found["unregistration_events_total", "expired"] == 1


def test_each_kind_has_its_causes() -> None:
    assert metrics.CAUSES.keys() == {*EventKind} - {EventKind.CHECKPOINT}


def test_all_that_can_happen_is_there_from_the_start() -> None:
    shown = {read.labels for read in EventCounts().read() if read.metric is metrics.ROUTE_CHANGES}
    assert shown >= {(kind, cause) for kind, causes in metrics.CAUSES.items() for cause in causes}
