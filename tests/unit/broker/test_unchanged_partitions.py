"""Tests which partitions of a fetch session are left out of a read, because nothing has changed."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.context import Context
from kproto.broker.fetch_sessions import CachedPartition
from kproto.broker.handlers.api_01_fetch import FetchOperation, PartitionRead
from kproto.broker.storage.partition import Partition
from kproto.broker.topics import Topic
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchResponse
from tests.support.batches import view
from tests.unit.broker.test_handlers import context, decided

VERSION = 12
PARTITIONS = 4


class State(NamedTuple):
    """The state of a partition, and how it differs from what the client knows."""

    appended: int = 0
    epochs: int = 0
    more: int = 0
    deleted: int = 0
    offset: int = 0
    epoch: int | None = None
    last_epoch: int = -1


def topic_of(where: Context) -> Topic:
    return where.cluster.topics.named("t")


def request(session_id: int, epoch: int, states: list[State]) -> FetchRequest:
    """Returns a fetch of one partition per state, at the end of its first records."""
    wanted = [
        FetchPartition(
            partition=index,
            fetch_offset=each.appended + each.offset,
            current_leader_epoch=each.epochs if each.epoch is None else each.epoch,
            last_fetched_epoch=each.last_epoch,
            partition_max_bytes=1 << 20,
        )
        for index, each in enumerate(states)
    ]
    topics = [FetchTopic(topic="t", partitions=wanted)] if wanted else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0, topics=topics)


def add_epoch(partition: Partition) -> None:
    partition.log.epochs.assign(partition.log.epochs.current + 1, partition.log.end_offset)


def next_read(where: Context, states: list[State]) -> tuple[FetchOperation, list[PartitionRead]]:
    """Creates a session, changes its partitions, and reads them for an incremental fetch."""
    partitions = topic_of(where).partitions
    for partition, each in zip(partitions, states, strict=True):
        partition.leader_and_isr.leader = where.node_id
        for _ in range(each.epochs):
            add_epoch(partition)
        for _ in range(each.appended):
            partition.log.append(view(1), where.clock.now_ms())
    first = decided(where, request(0, 0, states), VERSION)
    assert isinstance(first, FetchResponse)
    for partition, each in zip(partitions, states, strict=True):
        for _ in range(each.more):
            partition.log.append(view(1), where.clock.now_ms())
        partition.log.delete_before(min(each.deleted, partition.log.end_offset))
    following = request(first.session_id, 1, [])
    fetch_context = where.fetch_sessions.new_context(following, by_id=False, now_ms=0)
    operation = FetchOperation(where, following, VERSION, fetch_context)
    return operation, operation.read()


def indexes(cached: list[CachedPartition]) -> list[int]:
    return [each.requested.partition for each in cached]


def test_only_partitions_with_new_records_are_read() -> None:
    where = context(nodes=tuple(range(1, PARTITIONS + 1)))
    states = [State(appended=index) for index in range(PARTITIONS)]
    states[2] = State(appended=2, more=1)
    operation, read = next_read(where, states)
    assert indexes([part.cached for part in read]) == [2]
    others = [each.log for index, each in enumerate(topic_of(where).partitions) if index != 2]
    assert operation.unchanged_logs == others
    assert operation.is_enough(read) is True


def test_a_fetch_of_unchanged_partitions_waits() -> None:
    where = context(nodes=tuple(range(1, PARTITIONS + 1)))
    operation, read = next_read(where, [State()] * PARTITIONS)
    assert read == []
    operation.request.min_bytes = 1
    assert operation.is_enough(read) is False


@pytest.mark.parametrize("recreates", [False, True])
def test_partitions_of_a_deleted_topic_are_read(recreates: bool) -> None:
    where = context(nodes=tuple(range(1, PARTITIONS + 1)))
    operation, read = next_read(where, [State()] * PARTITIONS)
    assert not read
    topics = where.cluster.topics
    topics.remove(topics.named("t"))
    if recreates:
        topics.add(where.cluster.plan_topic("t", PARTITIONS))
    errors = [part.error for part in operation.read()]
    assert [error and error.name for error in errors] == ["UNKNOWN_TOPIC_OR_PARTITION"] * PARTITIONS


few = st.integers(0, 2)
states = st.builds(
    State,
    appended=few,
    epochs=few,
    more=st.sampled_from([0, 0, 1]),
    deleted=few,
    offset=st.sampled_from([0, 0, 0, -1, 1]),
    epoch=st.sampled_from([None, None, -1, 0, 1, 2, 3]),
    last_epoch=st.sampled_from([-1, -1, 0, 1, 2, 3]),
)


@given(st.lists(states, min_size=PARTITIONS, max_size=PARTITIONS), few)
def test_a_full_read_finds_nothing_in_the_partitions_that_are_left_out(
    changes: list[State], led_elsewhere: int
) -> None:
    where = context(nodes=tuple(range(1, PARTITIONS + 1)))
    operation, _ = next_read(where, changes)
    for partition in topic_of(where).partitions[:led_elsewhere]:
        partition.leader_and_isr.leader = where.node_id + 1
    read = operation.read()
    left_out = operation.unchanged_logs
    operation._may_leave_out = False
    full = operation.read()
    assert not operation.unchanged_logs
    by_index = {part.cached.requested.partition: part for part in read}
    count = 0
    for part in full:
        known = by_index.get(part.cached.requested.partition)
        if known is not None:
            assert (known.error and known.error.code) == (part.error and part.error.code)
            assert known.log_slice == part.log_slice
            assert known.diverged == part.diverged
            continue
        count += 1
        assert part.has_nothing
        assert part.partition is not None
        assert part.partition.log in left_out
        assert operation.fetch_context.is_unchanged(
            part.cached, part.partition.high_watermark, part.partition.log.start_offset
        )
    assert count == len(left_out)
