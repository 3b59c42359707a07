"""Histories of one place written down by hand: operations with their client, of one connection, and times."""

from faults.history import CLUSTERS, History, Operation, Register, Value

HERE = Register("b1", 0)
A, B = "127.41.0.1:10911", "127.41.0.2:10911"
LEASE_S = 100.0


def at_a(version: int) -> Value:
    return Value(A, version)


def at_b(version: int) -> Value:
    return Value(B, version)


def registers(
    client: int,
    began_s: float,
    ended_s: float,
    value: Value,
    *,
    answered: bool = True,
    lease_s: float = LEASE_S,
) -> Operation:
    return Operation(
        "register", HERE, value, f"c{client}", client, began_s, ended_s, answered, lease_s=lease_s
    )


def leaves(client: int, began_s: float, ended_s: float, address: str, *, answered: bool = True) -> Operation:
    return Operation("unregister", HERE, Value(address), f"c{client}", client, began_s, ended_s, answered)


def sees(client: int, began_s: float, ended_s: float, value: Value | None, *, topic: str = "T0") -> Operation:
    return Operation("lookup", HERE, value, f"c{client}", client, began_s, ended_s, question=topic)


def sees_address(client: int, began_s: float, ended_s: float, address: str | None) -> Operation:
    value = None if address is None else Value(address)
    return Operation("lookup", HERE, value, f"c{client}", client, began_s, ended_s, question=CLUSTERS)


def history(*operations: Operation) -> History:
    return History(tuple(sorted(operations, key=lambda one: one.began_s)))
