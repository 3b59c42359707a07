"""The registrations that the bench sends are what their names say, also where the last is followed by the first."""

import itertools
from collections.abc import Callable, Iterable, Iterator

import pytest
from msgspec.structs import replace

from bench.workloads import (
    address,
    data_version_queries,
    identity,
    new_versions,
    registered,
    scenes,
    signed_by,
    topic_changes,
    topic_table,
    unchanged,
)
from registry.registration.request import Registration, signature
from rocketmq_remoting.acl_signature import ACCESS_KEY, SIGNATURE, verifies
from rocketmq_remoting.command import Command
from rocketmq_remoting.data_version import decode_data_version
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.register_broker_body import RegisterBrokerBody
from rocketmq_remoting.registration import body_crc32, decode_register_broker_body

BROKERS, TOPICS, ROUNDS = 2, 5, 3


def commands(frames: Iterable[bytes]) -> list[Command]:
    reader = FrameReader()
    reader.feed(b"".join(frames))
    decoded = []
    while (command := reader.next_command()) is not None:
        decoded.append(command)
    return decoded


def by_broker(sent: list[Command]) -> Iterator[list[Command]]:
    """Yield the commands of each broker, its first once more at the end."""
    for broker in range(BROKERS):
        own = [command for command in sent if (command.ext or {})["brokerAddr"] == address(broker)]
        yield [*own, own[0]]


def body(command: Command) -> RegisterBrokerBody:
    return decode_register_broker_body(command.body, version=command.version, compressed=False, now_ms=0)


def cache_key(command: Command) -> object:
    """Return the key under which the server caches a registration."""
    ext = command.ext or {}
    one = Registration(
        ext["clusterName"],
        ext["brokerName"],
        ext["brokerAddr"],
        0,
        version=command.version,
        body=command.body,
    )
    return signature(one, delete_missing=False)


@pytest.mark.parametrize("frames", [unchanged, new_versions, topic_changes])
def test_brokers_take_turns_over_a_connection_of_their_own(
    frames: Callable[[int, int, int], Iterator[bytes]],
) -> None:
    sent = commands(frames(BROKERS, TOPICS, ROUNDS))
    assert len(sent) % BROKERS == 0
    assert all((command.ext or {}).items() >= identity(i % BROKERS).items() for i, command in enumerate(sent))
    assert all((command.ext or {})["bodyCrc32"] == str(body_crc32(command.body)) for command in sent)


@pytest.mark.parametrize(("alike", "bodies"), [(None, ROUNDS), (1, BROKERS * ROUNDS)])
def test_unchanged_registrations_have_one_signature_though_no_two_bodies_are_equal(
    alike: int | None, bodies: int
) -> None:
    sent = commands(unchanged(BROKERS, TOPICS, ROUNDS, alike))
    assert len({command.body for command in sent}) == bodies
    first = commands(registered(BROKERS, TOPICS, alike)())
    for broker, own in enumerate(by_broker(sent)):
        assert {cache_key(one) for one in own} == {cache_key(first[broker])}


def test_signed_requests_are_the_same_with_a_key() -> None:
    plain = commands(unchanged(BROKERS, TOPICS, ROUNDS))
    signed = commands(signed_by("K", "a secret", unchanged(BROKERS, TOPICS, ROUNDS)))
    for one, same in zip(signed, plain, strict=True):
        fields = dict(one.ext or {})
        assert verifies(fields, one.body, "a secret")
        assert (fields.pop(ACCESS_KEY), len(fields.pop(SIGNATURE))) == ("K", 28)
        assert replace(one, ext=fields) == same
    assert len({one.get(SIGNATURE) for one in signed}) == len(signed)


def test_a_new_version_is_never_the_one_before_and_brings_the_same_topics() -> None:
    for own in by_broker(commands(new_versions(BROKERS, TOPICS, ROUNDS))):
        for before, after in itertools.pairwise(map(body, own)):
            assert before.data_version != after.data_version
            assert before.topics == after.topics == topic_table(TOPICS)


def test_topics_registered_alone_meet_brokers_that_no_other_load_has_met() -> None:
    alone = [scene for scene in scenes() if any("alone" in load.name for load in scene.workloads)]
    assert [len(scene.workloads) for scene in alone] == [1, 1]


def test_one_topic_changes_from_registration_to_registration() -> None:
    for own in by_broker(commands(topic_changes(BROKERS, TOPICS, ROUNDS))):
        assert len(own) == 2 * ROUNDS + 1
        for before, after in itertools.pairwise(map(body, own)):
            assert before.data_version != after.data_version
            assert sum(before.topics[name] != after.topics[name] for name in topic_table(TOPICS)) == 1


def test_brokers_ask_for_the_version_that_they_have_registered() -> None:
    first, second = commands(registered(BROKERS, TOPICS)()), commands(data_version_queries(BROKERS))
    for registered_one, query in zip(first, second, strict=True):
        assert decode_data_version(query.body) == body(registered_one).data_version


def test_each_of_many_brokers_has_an_address_of_its_own() -> None:
    assert len({address(broker) for broker in range(20_000)}) == 20_000
