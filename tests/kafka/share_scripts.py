"""Defines scripts of share group members; each yields the responses that a test compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from .share_sides import ShareSide

__all__ = ["SCRIPTS", "ShareScript", "joined"]

ShareScript = Callable[[ShareSide], Iterator[Any]]

T0: Final = ("t", 0)
ACCEPT: Final = [1]
RELEASE: Final = [2]
REJECT: Final = [3]
RENEW: Final = [4]


def joined(side: ShareSide, member: str, *topics: str) -> Any:
    """Joins, and waits until the member has the partitions of its topics."""
    side.heartbeat(member, 0, topics)
    deadline = time.monotonic() + 20
    while True:
        received = side.heartbeat(member)
        if side.assigned.get(member):
            return received
        assert time.monotonic() < deadline, received
        time.sleep(0.05)


def started(side: ShareSide, **configs: str) -> None:
    """Starts the group at the earliest offsets, with one member."""
    side.set_config(share_auto_offset_reset="earliest", **configs)
    joined(side, "m", "t")


def members_share_partitions(side: ShareSide) -> Iterator[Any]:
    yield side.heartbeat("a", 0, ["t", "u"])
    joined(side, "a", "t", "u")
    for member in ("b", "c", "d"):
        yield side.heartbeat(member, 0, ["t"])
        yield [side.heartbeat(each) for each in "abcd" if each in side.epochs]
    yield side.heartbeat("e", 0, ["t"])
    yield side.describe_share()
    yield side.heartbeat("b", topics=["u"])
    yield [side.heartbeat(each) for each in "abcd"]
    yield side.heartbeat("c", -1)
    yield [side.heartbeat(each) for each in "abd"]
    yield side.heartbeat("a", 99)
    yield side.heartbeat("a", 1)
    yield side.heartbeat("z", 1)
    yield side.describe_share()
    for member in "abd":
        yield side.heartbeat(member, -1)
    yield side.describe_share()
    yield side.list(5)


def records_are_acquired_and_acknowledged(side: ShareSide) -> Iterator[Any]:
    base = side.produce(*T0, 10)
    side.produce(*T0, 5)
    started(side)
    yield side.fetch("m", [T0])
    yield side.fetch("m")
    yield side.acknowledge("m", {T0: [(base, base + 4, ACCEPT)]})
    yield side.acknowledge("m", {T0: [(base, base, ACCEPT)]})
    yield side.acknowledge("m", {T0: [(base + 5, base + 6, RELEASE)]})
    yield side.fetch("m")
    yield side.acknowledge("m", {T0: [(base + 7, base + 9, [3, 2, 0])]})
    yield side.fetch("m", acks={T0: [(base + 5, base + 6, ACCEPT)]})
    yield side.describe_offsets("t")
    yield side.acknowledge("m", {T0: [(base + 10, base + 14, ACCEPT)]})
    yield side.acknowledge("m", {T0: [(base + 8, base + 8, ACCEPT)]})
    yield side.describe_offsets("t")
    side.produce(*T0, 3)
    yield side.fetch("m")
    yield side.fetch("m", epoch=-1)
    yield side.fetch("m", epoch=-1)
    yield side.fetch("m", [T0])


def acknowledgements_are_checked(side: ShareSide) -> Iterator[Any]:
    base = side.produce(*T0, 10)
    started(side)
    yield side.acknowledge("m", {T0: [(0, 0, ACCEPT)]}, epoch=1)
    yield side.fetch("m", [T0], acks={T0: [(0, 0, ACCEPT)]})
    yield side.fetch("m", [T0])
    yield side.fetch("m", epoch=7)
    yield side.acknowledge("m", {}, epoch=0)
    invalid: tuple[list[tuple[int, int, list[int]]], ...] = (
        [(5, 4, ACCEPT)],
        [(base, base + 1, [])],
        [(base, base + 1, [1, 1, 1])],
        [(base, base, [5])],
        [(base, base, [-1])],
        [(base, base, RENEW)],
        [(base + 3, base + 3, ACCEPT), (base, base, ACCEPT)],
        [(base + 8, base + 12, ACCEPT)],
        [(base + 20, base + 22, ACCEPT)],
        [(base + 1, base + 1, ACCEPT)],
        [(base + 1, base + 1, ACCEPT)],
        [(base, base + 4, ACCEPT)],
        [],
    )
    for batches in invalid:
        yield side.acknowledge("m", {T0: batches})
    yield side.acknowledge("m", {("t", 9): [(0, 0, ACCEPT)], ("u", 0): [(0, 0, ACCEPT)]})
    yield side.fetch("other", [T0])
    yield side.acknowledge("other", {T0: [(base + 5, base + 5, ACCEPT)]})
    yield side.fetch("m", [("t", 9)])
    yield side.fetch("m", forgotten=[("t", 9)])


def deliveries_are_limited(side: ShareSide) -> Iterator[Any]:
    base = side.produce(*T0, 4)
    side.produce(*T0, 4)
    started(side)
    yield side.fetch("m", [T0])
    for _ in range(14):
        yield side.acknowledge("m", {T0: [(base, base + 7, RELEASE)]})
        for first in range(base, base + 8):
            side.acknowledge("m", {T0: [(first, first, RELEASE)]})
        yield side.fetch("m")
        yield side.describe_offsets("t")


def a_session_releases_records(side: ShareSide) -> Iterator[Any]:
    side.produce(*T0, 6)
    started(side)
    yield side.fetch("m", [T0])
    yield side.acknowledge("m", {T0: [(0, 1, ACCEPT)]}, epoch=-1)
    yield side.fetch("n", [T0])
    yield side.acknowledge("n", {}, epoch=-1)
    yield side.acknowledge("n", {}, epoch=-1)


def records_are_limited(side: ShareSide) -> Iterator[Any]:
    for _ in range(4):
        side.produce(*T0, 5)
    started(side)
    yield side.fetch("m", [T0], max_records=7, batch_size=5)
    yield side.fetch("m", max_records=1)
    yield side.fetch("n", [T0], max_records=3, share_acquire_mode=1)
    yield side.fetch("n", max_records=3, share_acquire_mode=1)
    yield side.acknowledge("m", {T0: [(0, 9, RELEASE)]})
    yield side.fetch("n", max_records=3, share_acquire_mode=1)
    yield side.fetch("n", max_records=100)
    yield side.describe_offsets("t")


def locks_are_renewed(side: ShareSide) -> Iterator[Any]:
    side.produce(*T0, 4)
    started(side, share_record_lock_duration_ms="1000")
    yield side.fetch("m", [T0])
    none: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    yield side.fetch("m", acks={T0: [(0, 0, RENEW)]}, is_renew_ack=True, **none)
    yield side.fetch("m", acks={T0: [(0, 0, RENEW)]}, is_renew_ack=True)
    yield side.acknowledge("m", {T0: [(0, 1, RENEW)]}, is_renew_ack=True)
    yield side.acknowledge("m", {T0: [(0, 1, RENEW)]})
    yield side.acknowledge("m", {T0: [(0, 3, [1, 4, 2, 1])]}, is_renew_ack=True)
    yield side.fetch("m", max_wait_ms=5_000)
    yield side.acknowledge("m", {T0: [(2, 2, ACCEPT)]})
    yield side.fetch("m", max_wait_ms=5_000)


def offsets_are_altered_and_deleted(side: ShareSide) -> Iterator[Any]:
    for index in range(3):
        side.produce("t", index, 5)
    yield side.describe_offsets()
    yield side.delete_offsets("t")
    started(side)
    yield side.fetch("m", [T0])
    yield side.acknowledge("m", {T0: [(0, 2, ACCEPT)]}, epoch=-1)
    yield side.alter_offsets(("t", 0, 2))
    yield side.delete_offsets("t")
    yield side.describe_offsets()
    yield side.describe_offsets("t", "u", partitions=[0, 1])
    side.heartbeat("m", -1)
    yield side.alter_offsets(("t", 0, 2), ("t", 9, 0), ("none", 0, 0), ("u", 0, 1))
    yield side.describe_offsets()
    yield side.describe_share()
    yield side.delete_offsets("u", "none", "t")
    yield side.describe_offsets()
    joined(side, "n", "t")
    yield side.describe_offsets()
    yield side.fetch("n", [T0])
    yield side.describe_share()


SCRIPTS: Final[tuple[ShareScript, ...]] = (
    members_share_partitions,
    records_are_acquired_and_acknowledged,
    acknowledgements_are_checked,
    deliveries_are_limited,
    a_session_releases_records,
    records_are_limited,
    locks_are_renewed,
    offsets_are_altered_and_deleted,
)
