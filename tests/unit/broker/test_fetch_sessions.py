"""Tests the cache of fetch sessions: epochs, changed partitions, order and eviction."""

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


def fetch(
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


def found(context: FetchContext, **fields: object) -> list[tuple[CachedPartition, PartitionData]]:
    """Returns each requested partition with its response data; `fields` replace the defaults."""
    data = {"high_watermark": 5, "log_start_offset": 0, "records": b"", **fields}
    return [
        (it, PartitionData(partition_index=it.requested.partition, **data))  # type: ignore[arg-type]
        for it in context.partitions
    ]


def indexes(answer: FetchContextResponse) -> list[int]:
    return [data.partition_index for _, data in answer.partitions]


def create_session(cache: FetchSessionCache, *partitions: int, now_ms: int = 0) -> int:
    context = cache.new_context(fetch(0, 0, *partitions), by_id=False, now_ms=now_ms)
    return context.answer(found(context), now_ms).session_id


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, -1), (-7, -1), (0, 1), (1, 2), (2**31 - 2, 2**31 - 1)]
)
def test_each_session_epoch_has_its_next(epoch: int, expected: int) -> None:
    assert next_epoch(epoch) == expected


def test_session_epoch_wraps_to_1() -> None:
    assert next_epoch(2**31 - 1) == 1


def test_incremental_fetch_returns_changed_partitions() -> None:
    cache = sessions()
    full = cache.new_context(fetch(0, 0, 0, 1, 2), by_id=False, now_ms=0)
    answer = full.answer(found(full), 0)
    assert (answer.error, answer.session_id, indexes(answer)) == (None, 1, [0, 1, 2])
    changes: list[dict[str, object]] = [
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
    for epoch, fields in enumerate(changes, 1):
        context = cache.new_context(fetch(1, epoch), by_id=False, now_ms=0)
        assert [it.requested.partition for it in context.partitions] == [0, 1, 2]
        mark_sent.append(bool(indexes(context.answer(found(context, **fields), 0))))
    assert mark_sent == [False, True, True, False, True, True, True, True, False, True]


def test_partition_with_records_moves_to_the_end() -> None:
    cache = sessions()
    create_session(cache, 0, 1, 2)
    orders = []
    for epoch in range(1, 5):
        context = cache.new_context(fetch(1, epoch), by_id=False, now_ms=0)
        orders.append([it.requested.partition for it in context.partitions])
        read = found(context)
        read[0][1].records = b"x"
        context.answer(read, 0)
    assert orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]


def test_session_keeps_changes_of_client() -> None:
    cache = sessions()
    create_session(cache, 0, 1)
    context = cache.new_context(fetch(1, 1, 1, 5, offset=9, forget=(0,)), by_id=False, now_ms=0)
    assert [(it.requested.partition, it.requested.fetch_offset) for it in context.partitions] == [
        (1, 9),
        (5, 9),
    ]
    assert indexes(context.answer(found(context), 0)) == [5], "partition 5 was in no response yet"
    context = cache.new_context(fetch(1, 2), by_id=False, now_ms=0)
    assert [it.requested.fetch_offset for it in context.partitions] == [9, 9]


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
    cache = sessions()
    create_session(cache, 0)
    with pytest.raises(BrokerResponseError) as refused:
        cache.new_context(fetch(session_id, epoch, 7), by_id=by_id, now_ms=0)
    assert refused.value.name == error
    context = cache.new_context(fetch(1, 1), by_id=False, now_ms=0)
    assert [it.requested.partition for it in context.partitions] == [0]


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_it_names(epoch: int) -> None:
    cache = sessions()
    create_session(cache, 0)
    context = cache.new_context(fetch(1, epoch, 0), by_id=False, now_ms=0)
    assert len(cache) == 0
    assert context.answer(found(context), 0).session_id == (2 if epoch == 0 else 0)


def test_session_without_partitions_is_closed() -> None:
    cache = sessions()
    create_session(cache, 0)
    context = cache.new_context(fetch(1, 1, forget=(0,)), by_id=False, now_ms=0)
    answer = context.answer(found(context), 0)
    assert (answer.session_id, indexes(answer), len(cache)) == (0, [], 0)


def test_overtaken_response_is_invalid_session_epoch() -> None:
    cache = sessions()
    create_session(cache, 0)
    slow = cache.new_context(fetch(1, 1), by_id=False, now_ms=0)
    cache.new_context(fetch(1, 2), by_id=False, now_ms=0)
    answer = slow.answer(found(slow, records=b"x"), 0)
    assert (answer.error, answer.session_id) == ("INVALID_FETCH_SESSION_EPOCH", 1)
    assert answer.partitions == []


def test_cache_has_limited_slots() -> None:
    cache = sessions(slots=2)
    assert [
        create_session(cache, 0, 1),
        create_session(cache, 0),
        create_session(cache, 0, 1, 2),
    ] == [1, 2, 0], "none is old"
    assert len(cache) == 2


def test_least_recently_used_session_is_evicted() -> None:
    cache = sessions(slots=2)
    create_session(cache, 0, 1, 2)
    create_session(cache, 0, 1)
    cache.new_context(fetch(1, 1), by_id=False, now_ms=2 * MINUTE)
    assert create_session(cache, 0, now_ms=2 * MINUTE) == 0
    assert create_session(cache, 0, now_ms=2 * MINUTE + 1) == 3, "smaller, but in use"
    cache.new_context(fetch(1, 2), by_id=False, now_ms=2 * MINUTE + 1)
    with pytest.raises(BrokerResponseError, match="no fetch session 2"):
        cache.new_context(fetch(2, 1), by_id=False, now_ms=2 * MINUTE + 1)


def test_smaller_old_session_is_evicted_for_larger() -> None:
    cache = sessions(slots=2)
    create_session(cache, 0, 1)
    create_session(cache, 0)
    for session_id in (1, 2):
        cache.new_context(fetch(session_id, 1), by_id=False, now_ms=3 * MINUTE)
    assert create_session(cache, 0, now_ms=3 * MINUTE) == 0, "it is not larger"
    assert create_session(cache, 0, 1, now_ms=3 * MINUTE) == 3
    assert create_session(cache, 0, 1, 2, now_ms=3 * MINUTE) == 4
    assert create_session(cache, 0, 1, 2, 3, now_ms=3 * MINUTE) == 0, "both are new"


def test_no_session_without_slots() -> None:
    assert create_session(sessions(slots=0), 0) == 0


def test_throttled_partitions_are_returned_again() -> None:
    cache = sessions()
    create_session(cache, 0, 1)
    request = fetch(1, 1)
    context = cache.new_context(request, by_id=False, now_ms=0)
    answer = context.answer(found(context, high_watermark=8), 0)
    topic = FetchableTopicResponse(topic="t", partitions=[data for _, data in answer.partitions])
    response = FetchResponse(session_id=1, responses=[topic])
    assert cache.on_throttled(request, response) == 1
    context = cache.new_context(fetch(1, 2), by_id=False, now_ms=0)
    assert indexes(context.answer(found(context, high_watermark=8), 0)) == [0, 1]


def test_session_of_throttled_response_is_discarded() -> None:
    cache = sessions()
    request = fetch(0, 0, 0)
    context = cache.new_context(request, by_id=False, now_ms=0)
    answer = context.answer(found(context), 0)
    assert cache.on_throttled(request, FetchResponse(session_id=answer.session_id)) == 0
    assert len(cache) == 0


def test_ids_are_positive_and_differ() -> None:
    cache = FetchSessionCache()
    ids = {create_session(cache, 0) for _ in range(100)}
    assert len(ids) == 100
    assert all(1 <= session_id < 2**31 for session_id in ids)


def test_used_session_id_is_not_generated_again() -> None:
    given = iter([7, 7, 7, 8])
    cache = FetchSessionCache(new_id=lambda: next(given))
    assert [create_session(cache, 0), create_session(cache, 0)] == [7, 8]
