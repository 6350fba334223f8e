"""Defines scripts of share group members; each yields the responses that a test compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from kproto.messages import delete_share_group_state_request as delete_state
from kproto.messages import initialize_share_group_state_request as initialize_state
from kproto.messages import read_share_group_state_request as read_state
from kproto.messages import read_share_group_state_summary_request as read_summary
from kproto.messages import write_share_group_state_request as write_state

from .share_sides import Acks, ShareSide

__all__ = ["SCRIPTS", "ShareScript", "joined"]

ShareScript = Callable[[ShareSide], Iterator[Any]]

T0: Final = ("t", 0)
T1: Final = ("t", 1)
ACCEPT: Final = [1]
RELEASE: Final = [2]
REJECT: Final = [3]
RENEW: Final = [4]

#: Two hours in ms.
HOURS_MS: Final = 7_200_000


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


def acknowledgements_below_the_start_offset_succeed(side: ShareSide) -> Iterator[Any]:
    side.produce(*T0, 4)
    started(side, share_record_lock_duration_ms="1000")
    yield side.fetch("m", [T0])
    yield side.fetch("n", [T0], max_wait_ms=5_000)  # after the locks of m
    yield side.acknowledge("n", {T0: [(0, 1, REJECT), (2, 3, ACCEPT)]})
    yield side.describe_offsets("t")
    yield side.acknowledge("m", {T0: [(0, 1, ACCEPT)]})
    yield side.acknowledge("m", {T0: [(2, 2, RELEASE)]})
    yield side.acknowledge("m", {T0: [(3, 3, REJECT)]})
    yield side.describe_offsets("t")


def acknowledgements_across_the_start_offset_fail(side: ShareSide) -> Iterator[Any]:
    side.produce(*T0, 4)
    side.produce(*T1, 4)
    started(side)
    yield side.fetch("m", [T0])
    yield side.acknowledge("m", {T0: [(0, 3, ACCEPT)]})
    across: Acks = {T0: [(3, 4, ACCEPT)]}
    yield side.acknowledge("m", across)
    yield side.acknowledge("m", {}, epoch=2)
    yield side.acknowledge("m", {}, epoch=3)
    yield side.fetch("m", acks=across)
    yield side.fetch("m", epoch=5)
    yield side.fetch("m", [T1], epoch=5)
    yield side.acknowledge("m", {T1: [(0, 3, ACCEPT)], **across})
    yield side.acknowledge("m", {**across, T1: [(0, 3, ACCEPT)]}, epoch=7)
    yield side.acknowledge("m", across, epoch=-1)
    yield side.acknowledge("m", across, epoch=-1)
    yield side.describe_offsets("t")


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
    yield side.delete_offsets("u", "none", "t")
    joined(side, "n", "t")
    yield side.describe_offsets()
    yield side.fetch("n", [T0])
    yield side.describe_share()


def a_new_group_gets_offsets(side: ShareSide) -> Iterator[Any]:
    for index in range(3):
        side.produce("t", index, 5)
    yield side.alter_offsets(("t", 0, 2), ("t", 1, 0))
    yield side.describe_share()
    yield side.describe_offsets()
    yield side.alter_offsets(("t", 0, 3))
    yield side.describe_share()
    side.set_config(share_auto_offset_reset="earliest")
    joined(side, "m", "t")
    time.sleep(0.2)
    side.heartbeat("m")
    yield side.describe_share()
    yield side.describe_offsets()
    yield side.fetch("m", [T0])
    yield side.acknowledge("m", {T0: [(3, 3, ACCEPT)]})
    side.heartbeat("m", -1)
    yield side.alter_offsets(("t", 0, 0))
    yield side.acknowledge("m", {T0: [(4, 4, ACCEPT)]})
    yield side.fetch("m")
    yield side.fetch("m")


def groups_of_other_types_are_refused(side: ShareSide) -> Iterator[Any]:
    joined(side, "m", "t")
    yield side.list(5)
    yield side.delete(3)
    side.heartbeat("m", -1)
    yield side.delete(3)
    yield side.list(5)
    yield side.describe_share()
    yield side.heartbeat("m", 1)


def configs_are_checked(side: ShareSide) -> Iterator[Any]:
    for name, value in (
        ("share_auto_offset_reset", "never"),
        ("share_auto_offset_reset", "by_duration:PT1H"),
        ("share_auto_offset_reset", "by_duration:-PT1H"),
        ("share_auto_offset_reset", "by_duration:1h"),
        ("share_auto_offset_reset", "EARLIEST"),
        ("share_isolation_level", "read_committed"),
        ("share_isolation_level", "other"),
        ("share_record_lock_duration_ms", "999"),
        ("share_record_lock_duration_ms", "1000"),
        ("share_record_lock_duration_ms", "60001"),
        ("share_delivery_count_limit", "1"),
        ("share_delivery_count_limit", "11"),
        ("share_partition_max_record_locks", "99"),
        ("share_partition_max_record_locks", "4001"),
        ("share_session_timeout_ms", "44999"),
        ("share_session_timeout_ms", "50000"),
        ("share_heartbeat_interval_ms", "15001"),
        ("share_renew_acknowledge_enable", "maybe"),
        ("share_renew_acknowledge_enable", "false"),
    ):
        yield name, value, side.set_config(**{name: value})


def starts_follow_the_reset_strategy(side: ShareSide) -> Iterator[Any]:
    for index in range(3):
        side.produce("t", index, 5, HOURS_MS)
    for member, reset in (
        ("a", "latest"),
        ("b", "by_duration:P9999D"),
        ("c", "by_duration:PT0.001S"),
    ):
        side.set_config(share_auto_offset_reset=reset)
        joined(side, member, "t")
        index = "abc".index(member)
        yield side.fetch(member, [("t", index)])
        side.produce("t", index, 2, HOURS_MS)
        yield side.fetch(member)


def transactions_are_read(side: ShareSide, *levels: str) -> Iterator[Any]:
    side.produce(*T0, 2)
    side.transact(*T0, 3, commits=True)
    side.transact(*T0, 3, commits=False)
    side.transact(*T0, 2, commits=False)
    side.produce(*T0, 2)
    started(side, **dict(zip(levels[::2], levels[1::2], strict=True)))
    yield side.fetch("m", [T0])
    yield side.fetch("m")
    yield side.acknowledge("m", {T0: [(0, 5, ACCEPT)]})
    yield side.describe_offsets("t")
    yield side.acknowledge("m", {T0: [(6, 14, [1, 1, 1, 0, 1, 1, 0, 1, 1])]})
    yield side.acknowledge("m", {T0: [(9, 9, [0])]})
    yield side.acknowledge("m", {T0: [(12, 14, [0, 1, 2])]})
    yield side.fetch("m")
    yield side.describe_offsets("t")


def aborted_records_are_delivered(side: ShareSide) -> Iterator[Any]:
    return transactions_are_read(side)


def aborted_records_are_archived(side: ShareSide) -> Iterator[Any]:
    return transactions_are_read(side, "share_isolation_level", "read_committed")


def renewals_are_switched_off(side: ShareSide) -> Iterator[Any]:
    side.produce(*T0, 4)
    started(side, share_renew_acknowledge_enable="false")
    yield side.fetch("m", [T0])
    yield side.acknowledge("m", {T0: [(0, 1, RENEW)]}, is_renew_ack=True)
    yield side.acknowledge("m", {T0: [(0, 1, ACCEPT)]}, is_renew_ack=True)


def few_records_are_locked(side: ShareSide) -> Iterator[Any]:
    for _ in range(8):
        side.produce(*T0, 20)
    started(side, share_partition_max_record_locks="100")
    yield side.fetch("m", [T0], batch_size=20)
    yield side.fetch("m")
    yield side.acknowledge("m", {T0: [(20, 39, RELEASE), (60, 60, RELEASE)]})
    yield side.fetch("m", max_records=10)
    yield side.fetch("m")
    yield side.acknowledge("m", {T0: [(0, 0, ACCEPT)]})
    yield side.fetch("m", max_records=5)
    yield side.acknowledge("m", {T0: [(1, 19, ACCEPT)]})
    yield side.fetch("m", max_records=5)
    yield side.fetch("m")
    yield side.describe_offsets("t")


def states_are_written_and_read(side: ShareSide) -> Iterator[Any]:
    topic_id = side.topics["t"]
    side.settle("t")

    def initialize(index: int, epoch: int, start: int) -> Any:
        part = initialize_state.PartitionData(
            partition=index, state_epoch=epoch, start_offset=start
        )
        data = initialize_state.InitializeStateData(topic_id=topic_id, partitions=[part])
        return side.ask_state(
            initialize_state.InitializeShareGroupStateRequest(group_id=side.group_id, topics=[data])
        )

    def read(index: int, epoch: int) -> Any:
        part = read_state.PartitionData(partition=index, leader_epoch=epoch)
        data = read_state.ReadStateData(topic_id=topic_id, partitions=[part])
        return side.ask_state(
            read_state.ReadShareGroupStateRequest(group_id=side.group_id, topics=[data])
        )

    def summary(index: int) -> Any:
        part = read_summary.PartitionData(partition=index, leader_epoch=0)
        data = read_summary.ReadStateSummaryData(topic_id=topic_id, partitions=[part])
        return side.ask_state(
            read_summary.ReadShareGroupStateSummaryRequest(group_id=side.group_id, topics=[data]),
            1,
        )

    def delete(index: int) -> Any:
        part = delete_state.PartitionData(partition=index)
        data = delete_state.DeleteStateData(topic_id=topic_id, partitions=[part])
        return side.ask_state(
            delete_state.DeleteShareGroupStateRequest(group_id=side.group_id, topics=[data])
        )

    def write(
        state: int, leader: int, start: int, complete: int, *batches: tuple[int, int, int, int]
    ) -> Any:
        part = write_state.PartitionData(
            partition=0,
            state_epoch=state,
            leader_epoch=leader,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[
                write_state.StateBatch(
                    first_offset=a, last_offset=b, delivery_state=c, delivery_count=d
                )
                for a, b, c, d in batches
            ],
        )
        data = write_state.WriteStateData(topic_id=topic_id, partitions=[part])
        return side.ask_state(
            write_state.WriteShareGroupStateRequest(group_id=side.group_id, topics=[data]), 1
        )

    yield read(0, 0)
    yield write(0, 0, 0, 0)
    yield initialize(0, 1, -1)
    yield summary(0)
    yield read(0, 2)
    yield read(0, 1)
    yield summary(0)
    yield write(1, 2, 10, 0, (10, 19, 0, 1), (20, 29, 2, 1))
    yield write(1, 1, 10, 0)
    yield write(0, 2, 10, 0)
    yield write(1, 5, 12, 1, (15, 24, 0, 2))
    yield read(0, 2)
    yield write(1, 2, 11, 7, (11, 13, 4, 3), (14, 14, 4, 3), (16, 17, 2, 2))
    yield read(0, 5)
    yield summary(0)
    yield initialize(0, 0, 5)
    yield initialize(0, 2, 5)
    yield read(0, 5)
    yield summary(0)
    yield delete(0)
    yield delete(0)
    yield delete(9)
    yield summary(0)
    yield read(9, 0)
    yield initialize(9, 0, 0)
    yield initialize(-1, 0, 0)
    yield initialize(0, -1, 0)
    yield read(0, -1)


SCRIPTS: Final[tuple[ShareScript, ...]] = (
    members_share_partitions,
    records_are_acquired_and_acknowledged,
    acknowledgements_are_checked,
    deliveries_are_limited,
    a_session_releases_records,
    records_are_limited,
    locks_are_renewed,
    acknowledgements_below_the_start_offset_succeed,
    acknowledgements_across_the_start_offset_fail,
    offsets_are_altered_and_deleted,
    a_new_group_gets_offsets,
    groups_of_other_types_are_refused,
    configs_are_checked,
    starts_follow_the_reset_strategy,
    aborted_records_are_delivered,
    aborted_records_are_archived,
    renewals_are_switched_off,
    few_records_are_locked,
    states_are_written_and_read,
)
