"""Fetch sessions as plain data: epochs, changed partitions, their order, and eviction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto import BrokerResponseError
from kproto.broker.fetch_sessions import (
    CachedPartition,
    FetchContext,
    FetchContextResponse,
    FetchSessionCache,
    next_epoch,
)
from kproto.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kproto.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

MINUTE = 60_000


def counting() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


def sessions(slots: int = 10, eviction_ms: int = 2 * MINUTE) -> FetchSessionCache:
    numbers = counting()
    return FetchSessionCache(slots, eviction_ms, new_id=lambda: next(numbers))


def asks(
    session_id: int,
    epoch: int,
    *partitions: int,
    forget: tuple[int, ...] = (),
    offset: int = 0,
) -> FetchRequest:
    wanted = [FetchPartition(partition=index, fetch_offset=offset) for index in partitions]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))],
    )


def found(turn: FetchContext, **fields: object) -> list[tuple[CachedPartition, PartitionData]]:
    """Returns the same result for each requested partition."""
    said = {"high_watermark": 5, "log_start_offset": 0, "records": b"", **fields}
    return [
        (it, PartitionData(partition_index=it.wanted.partition, **said))  # type: ignore[arg-type]
        for it in turn.sought
    ]


def indexes(answer: FetchContextResponse) -> list[int]:
    return [data.partition_index for _, data in answer.partitions]


def begun(its: FetchSessionCache, *partitions: int, now_ms: int = 0) -> int:
    turn = its.new_context(asks(0, 0, *partitions), by_id=False, now_ms=now_ms)
    return turn.answer(found(turn), now_ms).session_id


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, -1), (-7, -1), (0, 1), (1, 2), (2**31 - 2, 2**31 - 1)]
)
def test_each_session_epoch_has_its_next(epoch: int, expected: int) -> None:
    assert next_epoch(epoch) == expected


def test_session_epoch_wraps_to_1() -> None:
    assert next_epoch(2**31 - 1) == 1


def test_incremental_fetch_returns_changed_partitions() -> None:
    its = sessions()
    full = its.new_context(asks(0, 0, 0, 1, 2), by_id=False, now_ms=0)
    answer = full.answer(found(full), 0)
    assert (answer.error, answer.session_id, indexes(answer)) == (None, 1, [0, 1, 2])
    news: list[dict[str, object]] = [
        {},
        {"records": b"x"},
        {"high_watermark": 6},
        {"high_watermark": 6},
        {"high_watermark": 6, "log_start_offset": 2},
        {"high_watermark": -1, "log_start_offset": 2, "error_code": 6},
        {"high_watermark": 6, "log_start_offset": 2},
        {"high_watermark": 6, "log_start_offset": 2, "preferred_read_replica": 3},
        {"high_watermark": 6, "log_start_offset": 2},
        {"high_watermark": 6, "log_start_offset": 2, "diverging_epoch": EpochEndOffset(epoch=1)},
    ]
    mark_sent = []
    for epoch, fields in enumerate(news, 1):
        turn = its.new_context(asks(1, epoch), by_id=False, now_ms=0)
        assert [it.wanted.partition for it in turn.sought] == [0, 1, 2]
        mark_sent.append(bool(indexes(turn.answer(found(turn, **fields), 0))))
    assert mark_sent == [False, True, True, False, True, True, True, True, False, True]


def test_partition_with_records_moves_to_the_end() -> None:
    its = sessions()
    begun(its, 0, 1, 2)
    orders = []
    for epoch in range(1, 5):
        turn = its.new_context(asks(1, epoch), by_id=False, now_ms=0)
        orders.append([it.wanted.partition for it in turn.sought])
        read = found(turn)
        read[0][1].records = b"x"
        turn.answer(read, 0)
    assert orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]


def test_session_keeps_changes_of_client() -> None:
    its = sessions()
    begun(its, 0, 1)
    turn = its.new_context(asks(1, 1, 1, 5, offset=9, forget=(0,)), by_id=False, now_ms=0)
    assert [(it.wanted.partition, it.wanted.fetch_offset) for it in turn.sought] == [(1, 9), (5, 9)]
    assert indexes(turn.answer(found(turn), 0)) == [5], "partition 5 was in no response yet"
    turn = its.new_context(asks(1, 2), by_id=False, now_ms=0)
    assert [it.wanted.fetch_offset for it in turn.sought] == [9, 9]


@pytest.mark.parametrize(
    ("session_id", "epoch", "by_id", "error"),
    [
        (2, 1, False, "FETCH_SESSION_ID_NOT_FOUND"),
        (0, 1, False, "FETCH_SESSION_ID_NOT_FOUND"),
        (1, 2, False, "INVALID_FETCH_SESSION_EPOCH"),
        (1, -2, False, "INVALID_FETCH_SESSION_EPOCH"),
        (1, 1, True, "FETCH_SESSION_TOPIC_ID_ERROR"),
    ],
)
def test_rejected_request_does_not_change_session(
    session_id: int, epoch: int, by_id: bool, error: str
) -> None:
    its = sessions()
    begun(its, 0)
    with pytest.raises(BrokerResponseError) as refused:
        its.new_context(asks(session_id, epoch, 7), by_id=by_id, now_ms=0)
    assert refused.value.name == error
    turn = its.new_context(asks(1, 1), by_id=False, now_ms=0)
    assert [it.wanted.partition for it in turn.sought] == [0]


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_it_names(epoch: int) -> None:
    its = sessions()
    begun(its, 0)
    turn = its.new_context(asks(1, epoch, 0), by_id=False, now_ms=0)
    assert len(its) == 0
    assert turn.answer(found(turn), 0).session_id == (2 if epoch == 0 else 0)


def test_session_without_partitions_is_closed() -> None:
    its = sessions()
    begun(its, 0)
    turn = its.new_context(asks(1, 1, forget=(0,)), by_id=False, now_ms=0)
    answer = turn.answer(found(turn), 0)
    assert (answer.session_id, indexes(answer), len(its)) == (0, [], 0)


def test_overtaken_response_is_invalid_session_epoch() -> None:
    its = sessions()
    begun(its, 0)
    slow = its.new_context(asks(1, 1), by_id=False, now_ms=0)
    its.new_context(asks(1, 2), by_id=False, now_ms=0)
    answer = slow.answer(found(slow, records=b"x"), 0)
    assert (answer.error, answer.session_id) == ("INVALID_FETCH_SESSION_EPOCH", 1)
    assert answer.partitions == []


def test_cache_has_limited_slots() -> None:
    its = sessions(slots=2)
    assert [begun(its, 0, 1), begun(its, 0), begun(its, 0, 1, 2)] == [1, 2, 0], "none is old"
    assert len(its) == 2


def test_least_recently_used_session_is_evicted() -> None:
    its = sessions(slots=2)
    begun(its, 0, 1, 2)
    begun(its, 0, 1)
    its.new_context(asks(1, 1), by_id=False, now_ms=2 * MINUTE)
    assert begun(its, 0, now_ms=2 * MINUTE) == 0
    assert begun(its, 0, now_ms=2 * MINUTE + 1) == 3, "smaller, but in use"
    its.new_context(asks(1, 2), by_id=False, now_ms=2 * MINUTE + 1)
    with pytest.raises(BrokerResponseError, match="no fetch session 2"):
        its.new_context(asks(2, 1), by_id=False, now_ms=2 * MINUTE + 1)


def test_smaller_old_session_is_evicted_for_larger() -> None:
    its = sessions(slots=2)
    begun(its, 0, 1)
    begun(its, 0)
    for session_id in (1, 2):
        its.new_context(asks(session_id, 1), by_id=False, now_ms=3 * MINUTE)
    assert begun(its, 0, now_ms=3 * MINUTE) == 0, "it is not larger"
    assert begun(its, 0, 1, now_ms=3 * MINUTE) == 3
    assert begun(its, 0, 1, 2, now_ms=3 * MINUTE) == 4
    assert begun(its, 0, 1, 2, 3, now_ms=3 * MINUTE) == 0, "both are new"


def test_no_session_without_slots() -> None:
    assert begun(sessions(slots=0), 0) == 0


def test_throttled_partitions_are_returned_again() -> None:
    its = sessions()
    begun(its, 0, 1)
    request = asks(1, 1)
    turn = its.new_context(request, by_id=False, now_ms=0)
    answer = turn.answer(found(turn, high_watermark=8), 0)
    topic = FetchableTopicResponse(topic="t", partitions=[data for _, data in answer.partitions])
    response = FetchResponse(session_id=1, responses=[topic])
    assert its.on_throttled(request, response) == 1
    turn = its.new_context(asks(1, 2), by_id=False, now_ms=0)
    assert indexes(turn.answer(found(turn, high_watermark=8), 0)) == [0, 1]


def test_session_of_throttled_response_is_discarded() -> None:
    its = sessions()
    request = asks(0, 0, 0)
    turn = its.new_context(request, by_id=False, now_ms=0)
    answer = turn.answer(found(turn), 0)
    assert its.on_throttled(request, FetchResponse(session_id=answer.session_id)) == 0
    assert len(its) == 0


def test_ids_are_positive_and_differ() -> None:
    its = FetchSessionCache()
    ids = {begun(its, 0) for _ in range(100)}
    assert len(ids) == 100
    assert all(1 <= session_id < 2**31 for session_id in ids)


def test_used_session_id_is_not_generated_again() -> None:
    given = iter([7, 7, 7, 8])
    its = FetchSessionCache(new_id=lambda: next(given))
    assert [begun(its, 0), begun(its, 0)] == [7, 8]
