"""Following the stream on a real store: whole groups in order, and every way in which it can break."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.errors import StoreUnavailable
from registry.events.entry import Event
from registry.keys import Keys
from registry.store import connect as stores
from testbed.eventually import PATIENCE_S, eventually_async
from tests.logged import logged
from tests.worker.scene import asynchronous, reached, reads_denied
from worker.background import end
from worker.watch.boot_clock import boot_time
from worker.watch.follower import Follower
from worker.watch.stream_connection import PAUSE_MAX_S
from worker.watch.stream_end import COUNT

KEYS = Keys("default")
NUMBERLESS, UNREADABLE = "has no number (seq), so another program wrote it; ", "cannot be read: "
STARTED = {
    "v": "1",
    "kind": "stream_started",
    "cause": "empty_store",
    "inc": "2",
    "seq": "1",
    "part": "1/1",
    "n": "1",
}


class Recorder:
    """A listener that records its calls; `failing` of them fail, and none goes on while `gate` is closed."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.resets: list[str] = []
        self.failing = 0
        self.emptyings = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = False

    async def apply(self, group: Sequence[Event]) -> None:
        self.waiting = True
        await self.gate.wait()
        if self.failing:
            self.failing -= 1
            raise StoreUnavailable("away")
        for event in group:
            event.fields["n"]
        self.groups.append([event.get("n") for event in group])

    def emptied(self) -> None:
        self.emptyings += 1

    async def reset(self, cause: str) -> None:
        self.resets.append(cause)

    @property
    def flat(self) -> list[str]:
        return [n for group in self.groups for n in group]


@asynccontextmanager
async def followed(store: EmbeddedStore) -> AsyncIterator[tuple[Follower, Recorder]]:
    recorder = Recorder()
    follower = Follower(partial(stores.connect_follower, store.url), KEYS, recorder)
    task = asyncio.ensure_future(follower.run())
    assert await follower.following(3)
    try:
        yield follower, recorder
    finally:
        await end([task])


def add(redis: redis_py.Redis, seq: int, *, part: str = "1/1", id: str = "*", **fields: str) -> str:
    entry = {
        "v": "1",
        "kind": "conflict_seen",
        "inc": "1",
        "seq": str(seq),
        "part": part,
        "n": str(seq),
        **fields,
    }
    return str(redis.xadd(KEYS.events, entry, id=id))  # type: ignore[arg-type]


@asynchronous
async def test_it_begins_at_the_end_and_gives_whole_groups(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        add(redis, 2, part="1/2")
        await asyncio.sleep(0.03)
        assert recorder.groups == []
        last = add(redis, 3, part="2/2")
        add(redis, 4)
        assert await reached(follower, last)
        await eventually_async(lambda: recorder.groups == [["2", "3"], ["4"]])
        assert recorder.resets == ["start"]


@asynchronous
async def test_a_stream_that_begins_later_is_followed_from_its_first_entry(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    async with followed(store) as (_, recorder):
        add(redis, 1, kind="stream_started")
        await eventually_async(lambda: recorder.flat == ["1"])
        assert recorder.resets == ["start"]


@pytest.mark.parametrize(
    ("entries", "flat", "resets"),
    [
        pytest.param([(3, "1"), (4, "1")], ["3", "4"], [], id="no-break"),
        pytest.param([(4, "1")], ["4"], ["hole"], id="hole"),
        pytest.param([(2, "1")], ["2"], ["rollback"], id="seen-before"),
        pytest.param([(1, "2")], ["1"], ["incarnation"], id="another-incarnation-without-its-start"),
    ],
)
@asynchronous
async def test_the_sequence_tells_what_is_missing(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    entries: list[tuple[int, str]],
    flat: list[str],
    resets: list[str],
) -> None:
    add(redis, 1)
    add(redis, 2)
    async with followed(store) as (_, recorder):
        for seq, inc in entries:
            add(redis, seq, inc=inc)
        await eventually_async(lambda: recorder.flat == flat)
        assert recorder.resets == ["start", *resets]


@asynchronous
async def test_a_new_incarnation_is_an_entry_like_others(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    add(redis, 1)
    async with followed(store) as (_, recorder):
        redis.delete(KEYS.events)
        add(redis, 1, inc="2", kind="stream_started", part="1/2")
        add(redis, 2, inc="2", part="2/2")
        await eventually_async(lambda: recorder.groups == [["1", "2"]])
        assert recorder.resets == ["start"]


async def drop_connections(redis: redis_py.Redis, follower: Follower) -> None:
    redis.client_kill_filter(_type="normal", skipme=True)
    await eventually_async(lambda: not follower.connected)


@asynchronous
async def test_nothing_is_missed_over_a_reconnect(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        await drop_connections(redis, follower)
        for seq in (2, 3):
            last = add(redis, seq)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert (recorder.flat, recorder.resets) == (["2", "3"], ["start"])


@pytest.mark.parametrize("changes", [True, False])
@asynchronous
async def test_where_only_reads_fail_nothing_is_followed(
    store: EmbeddedStore, redis: redis_py.Redis, changes: bool
) -> None:
    """A connection is made four times a second, and each time it is checked where the reader is."""
    last = add(redis, 1)
    async with followed(store) as (follower, recorder):
        with reads_denied(redis):
            if changes:
                last = add(redis, 2)
            await eventually_async(lambda: follower.silent_for_s() > 2)
            assert not follower.connected
            assert follower.disconnected_for_s() > 2
            assert recorder.flat == []
        assert await follower.following(3)
        assert follower.silent_for_s() < 1
        assert follower.passed(last)


@asynchronous
async def test_an_entry_that_is_read_again_and_again_is_not_followed(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        recorder.failing = 1_000_000
        last = add(redis, 2)
        await eventually_async(lambda: follower.silent_for_s() > 2)
        assert not follower.passed(last)
        recorder.failing = 0
        assert await reached(follower, last, within_s=PATIENCE_S)
        await eventually_async(lambda: follower.connected and follower.silent_for_s() < 1.5)


@asynchronous
async def test_a_stream_is_read_before_it_is_followed(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    """So a worker whose store was away for long is not late, once it is connected, by the outage."""
    add(redis, 1)
    async with followed(store) as (follower, _):
        await drop_connections(redis, follower)
        follower._read_at -= 60
        await follower._following.wait()
        assert follower.silent_for_s() < 1


@asynchronous
async def test_what_was_trimmed_meanwhile_is_a_hole(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        await drop_connections(redis, follower)
        add(redis, 2)
        last = add(redis, 3)
        redis.xtrim(KEYS.events, maxlen=1, approximate=False)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert (recorder.flat, recorder.resets) == (["3"], ["start", "hole"])


@asynchronous
async def test_trimming_what_was_read_is_no_break(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        await drop_connections(redis, follower)
        last = add(redis, 2)
        redis.xtrim(KEYS.events, maxlen=1, approximate=False)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert (recorder.flat, recorder.resets) == (["2"], ["start"])


@asynchronous
async def test_an_entry_that_is_gone_on_reconnect_is_a_rollback(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    add(redis, 1)
    lost = add(redis, 2)
    async with followed(store) as (follower, recorder):
        redis.xdel(KEYS.events, lost)
        await drop_connections(redis, follower)
        await eventually_async(lambda: recorder.resets == ["start", "rollback"])
        last = add(redis, 2)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert recorder.flat == ["2"]


@asynchronous
async def test_a_connection_that_ends_between_two_reads_is_a_reconnect(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    """The store is another one then, whose clock is behind: where the next entry's number alone would fit."""
    add(redis, 1, id="1000-0")
    async with followed(store) as (follower, recorder):
        recorder.gate.clear()
        add(redis, 2, id="3000-0")
        await eventually_async(lambda: recorder.waiting)
        redis.client_kill_filter(_type="normal", skipme=True)
        redis.delete(KEYS.events)
        for seq, at in ((1, "1000-0"), (2, "2000-0"), (3, "4000-0")):
            last = add(redis, seq, id=at)
        await asyncio.sleep(0.1)  # until the end of the connection has arrived
        recorder.gate.set()
        await eventually_async(lambda: recorder.resets == ["start", "rollback"])
        assert await reached(follower, last, within_s=PATIENCE_S)


@asynchronous
async def test_a_new_stream_with_a_clock_behind_is_read_from_its_start(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        redis.delete(KEYS.events)
        add(redis, 1, id="5-0", inc="2", kind="stream_started")
        await drop_connections(redis, follower)
        await eventually_async(lambda: recorder.flat == ["1"])
        add(redis, 2, id="6-0", inc="2")
        await eventually_async(lambda: recorder.flat == ["1", "2"])
        assert recorder.resets == ["start"]


@pytest.mark.parametrize("reconnects", [True, False])
@asynchronous
async def test_an_empty_store_is_reported_before_it_is_written_to(
    store: EmbeddedStore, redis: redis_py.Redis, reconnects: bool
) -> None:
    redis.hset(KEYS.events_meta, "inc", "1")
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        redis.flushall()
        if reconnects:
            await drop_connections(redis, follower)
        await eventually_async(lambda: recorder.emptyings > 0)
        add(redis, 1, id="5-0", inc="2", kind="stream_started")
        await eventually_async(lambda: recorder.flat == ["1"])
        assert (recorder.emptyings, recorder.resets) == (1, ["start"])


@pytest.mark.parametrize("id", ["*", "5-0"], ids=["by-the-clock", "with-a-clock-behind"])
@asynchronous
async def test_a_new_store_is_reported_before_its_stream_is_followed(
    store: EmbeddedStore, redis: redis_py.Redis, id: str
) -> None:
    redis.hset(KEYS.events_meta, "inc", "1")
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        with redis.pipeline() as restart:
            restart.flushall()
            restart.xadd(KEYS.events, STARTED, id=id)  # type: ignore[arg-type]
            restart.client_kill_filter(_type="normal", skipme=True)
            restart.execute()
        await eventually_async(lambda: not follower.connected)
        assert await follower.following(3)
        assert recorder.emptyings == 1
        await eventually_async(lambda: recorder.flat == ["1"])
        assert (recorder.emptyings, recorder.resets) == (1, ["start"])


@asynchronous
async def test_a_stream_that_was_lost_is_no_new_store(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    redis.hset(KEYS.events_meta, "inc", "1")
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        redis.delete(KEYS.events)
        redis.xadd(KEYS.events, STARTED | {"cause": "stream_lost"}, id="5-0")  # type: ignore[arg-type]
        await drop_connections(redis, follower)
        await eventually_async(lambda: recorder.flat == ["1"])
        assert recorder.emptyings == 0


@pytest.mark.parametrize("begun", [True, False])
@asynchronous
async def test_a_store_that_is_empty_at_the_start_is_reported(
    store: EmbeddedStore, redis: redis_py.Redis, begun: bool
) -> None:
    if begun:
        redis.hset(KEYS.events_meta, "inc", "1")
    async with followed(store) as (_, recorder):
        assert (recorder.resets, recorder.emptyings) == (["start"], 0 if begun else 1)


@asynchronous
async def test_a_store_that_lost_its_stream_is_not_empty(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    add(redis, 1)
    redis.hset(KEYS.events_meta, "inc", "1")
    async with followed(store) as (follower, recorder):
        redis.delete(KEYS.events)
        await drop_connections(redis, follower)
        assert await follower.following(3)
        assert recorder.emptyings == 0


@asynchronous
async def test_a_group_that_could_not_be_applied_comes_again(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        recorder.failing = 2
        add(redis, 2)
        last = add(redis, 3)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert recorder.flat == ["2", "3"]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        pytest.param({"seq": "no number", "inc": "1", "n": "?"}, NUMBERLESS, id="sequence"),
        pytest.param(
            {"seq": "3", "inc": "1", "part": "1/1"}, UNREADABLE, id="what a listener needs is missing"
        ),
        pytest.param({"by": "an operator"}, NUMBERLESS, id="nothing of an entry"),
        pytest.param({"seq": b"\xff\xfe", "inc": "1"}, NUMBERLESS, id="no text"),
    ],
)
@asynchronous
async def test_an_entry_that_cannot_be_read_is_left_out_as_if_missed(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    caplog: pytest.LogCaptureFixture,
    entry: dict[str, str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worker.watch.follower.BLOCK_MS", 50)
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        add(redis, 2)
        odd = str(redis.xadd(KEYS.events, dict(entry)))  # type: ignore[arg-type]
        assert await reached(follower, odd, within_s=PATIENCE_S)
        assert (recorder.flat, recorder.resets[-1]) == (["2"], "unreadable")
        resets = [*recorder.resets]
        await asyncio.sleep(0.2)  # it is where it was, each of the four times it is looked for
        assert (follower.connected, recorder.resets) == (True, resets)
        last = add(redis, 4 if entry.get("seq") == "3" else 3)
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert recorder.flat[-1] in ("3", "4")
        assert follower.connected
    said = f"entry {odd} of the event stream {line}"
    assert sum(message.startswith(said) for message in caplog.messages) == 1


def add_many(redis: redis_py.Redis, number: int, entry: Mapping[str, str]) -> list[str]:
    """Add as many such entries at one moment, so that a reader has all of them before it; return their ids."""
    with redis.pipeline() as pipe:
        for _ in range(number):
            pipe.xadd(KEYS.events, dict(entry))  # type: ignore[arg-type]
        return list(map(str, pipe.execute()))


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        pytest.param({"v": "1", "kind": "kv_changed", "inc": "1"}, "unreadable", id="no number"),
        pytest.param(
            {"v": "1", "kind": "kv_changed", "inc": "1", "seq": "1", "n": "x"}, "rollback", id="seen before"
        ),
    ],
)
@asynchronous
async def test_entries_that_another_program_wrote_are_one_reset(
    store: EmbeddedStore,
    redis: redis_py.Redis,
    entry: dict[str, str],
    cause: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And one that comes after it is another one, for it may be of what was read again before."""
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        ids = add_many(redis, 5 * COUNT + 1, entry)
        assert await reached(follower, ids[-1], within_s=PATIENCE_S)
        assert recorder.resets == ["start", cause]
        last = str(redis.xadd(KEYS.events, dict(entry)))  # type: ignore[arg-type]
        assert await reached(follower, last, within_s=PATIENCE_S)
        assert recorder.resets == ["start", cause, cause]
        assert await reached(follower, add(redis, 2), within_s=PATIENCE_S)
        assert (recorder.flat[-1], recorder.resets) == ("2", ["start", cause, cause])
    assert f"entry {ids[0]}" in logged(caplog)[0]


@asynchronous
async def test_how_far_it_is_behind_the_end(
    store: EmbeddedStore, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(redis, 1)
    async with followed(store) as (follower, recorder):
        may_apply = asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(recorder, "apply", lambda _: may_apply.wait())
            last = add(redis, 2)
            await eventually_async(lambda: follower.behind_s() > 0)
            patch.setattr("worker.watch.stream_end.boot_time", lambda: boot_time() + 60)
            assert 55 < follower.behind_s() < 65
            assert follower.connected
            may_apply.set()
            assert await reached(follower, last, within_s=PATIENCE_S)
            await eventually_async(lambda: follower.behind_s() == 0)


@asynchronous
async def test_it_begins_behind_an_entry_that_cannot_be_read(
    store: EmbeddedStore, redis: redis_py.Redis
) -> None:
    redis.xadd(KEYS.events, {"seq": "no number"})
    async with followed(store) as (follower, recorder):
        assert await reached(follower, add(redis, 7), within_s=PATIENCE_S)
        assert (recorder.flat, recorder.resets) == (["7"], ["start"])


@asynchronous
async def test_waiting_for_an_entry_is_bounded(
    store: EmbeddedStore, redis: redis_py.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    last = add(redis, 1)
    async with followed(store) as (follower, _):
        assert await reached(follower, "")
        assert await reached(follower, last)
        assert not await reached(follower, "99999999999999-0", within_s=0.05)
    assert [line.partition(":")[0] for line in logged(caplog)] == ["the event stream is behind"]


@asynchronous
async def test_without_a_store_it_waits_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    follower = Follower(partial(stores.connect_follower, "redis://127.0.0.1:1/0"), KEYS, Recorder())
    task = asyncio.ensure_future(follower.run())
    assert not await follower.following(0.1)
    assert not follower.connected
    await end([task])
    (line,) = logged(caplog)
    assert line.startswith("the event stream cannot be followed: ")
    assert line.endswith(f"; retries within {PAUSE_MAX_S:g} s")
