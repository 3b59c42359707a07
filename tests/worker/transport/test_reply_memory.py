"""Which connections are cut off when long replies that are left unread take too much memory."""

from worker.transport.reply_memory import ReplyMemory

LIMIT = 1000
A, B, C = (bytes([letter]) * 400 for letter in b"abc")


class Holder:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def abort(self, reason: str) -> None:
        self.reasons.append(reason)


def test_a_reply_to_many_peers_counts_once() -> None:
    memory, holders = ReplyMemory(LIMIT), [Holder() for _ in range(100)]
    for holder in holders:
        memory.hold(holder, [A])
    assert memory.taken == len(A)
    for holder in holders[1:]:
        memory.release(holder, A)
    assert memory.taken == len(A)
    memory.release(holders[0], A)
    assert memory.taken == 0
    assert not any(holder.reasons for holder in holders)


def test_who_has_kept_one_longest_is_cut_off() -> None:
    memory = ReplyMemory(LIMIT)
    first, second, third = Holder(), Holder(), Holder()
    memory.hold(first, [A])
    memory.hold(second, [B])
    memory.release(first, A)
    memory.hold(first, [A])  # it has read one, and gets another
    memory.hold(third, [C])
    assert [len(holder.reasons) for holder in (first, second, third)] == [0, 1, 0]
    assert memory.taken == len(A) + len(C)


def test_what_transports_have_counts_for_each() -> None:
    memory = ReplyMemory(LIMIT)
    first, second, third = Holder(), Holder(), Holder()
    memory.hold(first, [A])
    memory.unwritten(first, 300)
    memory.release(first, A)
    memory.unwritten(second, 100)
    memory.unwritten(second, 300)
    assert memory.taken == 600
    memory.unwritten(third, 500)
    assert [len(holder.reasons) for holder in (first, second, third)] == [1, 0, 0]
    memory.unwritten(first, 0)
    memory.unwritten(second, 0)
    memory.unwritten(second, 0)
    assert memory.taken == 500
    memory.release_all(third)
    assert memory.taken == 0


def test_one_alone_may_have_more_than_the_limit() -> None:
    memory, holder = ReplyMemory(LIMIT), Holder()
    memory.hold(holder, [A, B, C])
    memory.hold(holder, [bytes(2 * LIMIT)])
    assert not holder.reasons
    memory.release_all(holder)
    assert memory.taken == 0


def test_the_same_reply_twice_to_one_peer() -> None:
    memory, holder = ReplyMemory(LIMIT), Holder()
    memory.hold(holder, [A, A])
    memory.release(holder, A)
    assert memory.taken == len(A)
    memory.release(holder, A)
    memory.release(holder, A)
    assert memory.taken == 0
