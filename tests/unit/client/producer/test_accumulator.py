"""Tests which batches the record accumulator sends, and how it handles failed batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from kproto.client.producer.accumulator import RecordAccumulator
from kproto.client.producer.batch import ProducerBatch
from kproto.client.producer.partition_queue import PartitionQueue
from kproto.client.producer.producer_state import (
    LAST_EPOCH,
    LAST_SEQUENCE,
    ProducerIdAndEpoch,
    identity_after_failure,
)
from kproto.wire.errors import (
    BrokerResponseError,
    KprotoError,
    RequestTimeoutError,
)
from tests.unit.client.producer.accumulators import (
    LOST,
    accumulator,
    add,
    error,
    number_of,
    outcome,
    plan,
    take_all,
    values_of,
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


Make = Callable[..., RecordAccumulator]


@pytest.fixture
def make(loop: asyncio.AbstractEventLoop) -> Make:
    return lambda **options: accumulator(loop, **options)


# --- Batches to send ---


def test_request_has_one_batch_of_each_ready_partition(make: Make) -> None:
    accumulated = make()
    for partition in range(3):
        add(accumulated, 2, partition)
    (queues,) = plan(accumulated).requests.values()
    assert [queue.partition for queue in queues] == [0, 1, 2]


def test_each_leader_gets_its_own_request(make: Make) -> None:
    accumulated = make()
    for partition in range(4):
        add(accumulated, 1, partition)
    found = accumulated.plan(0, lambda topic, partition, since: partition % 2, lambda node: 0)
    by_node = {node: [q.partition for q in queues] for node, queues in found.requests.items()}
    assert by_node == {0: [0, 2], 1: [1, 3]}


def test_first_batch_of_a_producer_id_is_sent_alone_then_five(make: Make) -> None:
    accumulated = make()
    batches = add(accumulated, 9)
    assert take_all(accumulated) == batches[:1]
    accumulated.on_ack(batches[0])
    assert take_all(accumulated) == batches[1:6]
    assert [batch.sequence for batch in batches[:6]] == [0, 1, 2, 3, 4, 5]
    accumulated.on_ack(batches[1])
    assert take_all(accumulated) == batches[6:7]


def test_producer_without_idempotence_sends_one_batch_at_a_time(make: Make) -> None:
    accumulated = make(idempotent=False)
    batches = add(accumulated, 3)
    for batch in batches:
        assert take_all(accumulated) == [batch]
        assert (batch.identity, batch.sequence) == ((-1, -1), -1)
        accumulated.on_ack(batch)


def test_open_batch_waits_for_batches_in_flight(make: Make) -> None:
    accumulated = make(batch_bytes=10_000)
    (first,) = add(accumulated)
    assert take_all(accumulated) == [first]
    accumulated.on_ack(first)
    (second,) = add(accumulated)
    assert take_all(accumulated) == [second]
    (third,) = add(accumulated)
    assert take_all(accumulated) == []
    assert add(accumulated) == [third]
    accumulated.on_ack(second)
    assert take_all(accumulated) == [third]


def test_batch_lingers_unless_it_is_full_or_flushed(make: Make) -> None:
    accumulated = make(linger_ms=50)
    (first,) = add(accumulated, now=1.0)
    found = plan(accumulated, now=1.02)
    assert (found.requests, found.next_at) == ({}, 1.05)
    assert take_all(accumulated, now=1.05) == [first]
    accumulated.on_ack(first)
    full, part = add(accumulated, 2, now=2.0)
    assert take_all(accumulated, now=2.0) == [full]
    accumulated.on_ack(full)
    accumulated.stop_lingering()
    assert take_all(accumulated, now=2.0) == [part]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[PartitionQueue]:
    """Returns a list; each partition queue that a plan examines is added to this list."""
    found: list[PartitionQueue] = []
    next_at = PartitionQueue.next_at

    def counting(self: PartitionQueue, max_in_flight: int) -> float:
        found.append(self)
        return next_at(self, max_in_flight)

    monkeypatch.setattr(PartitionQueue, "next_at", counting)
    return found


def test_idle_partitions_take_no_steps(make: Make, steps: list[PartitionQueue]) -> None:
    """A record takes no more steps after records of 2,000 partitions than the first record took."""
    accumulated = make()
    (batch,) = add(accumulated)
    assert take_all(accumulated) == [batch]
    accumulated.on_ack(batch)
    of_one = len(steps)
    for partition in range(2_000):
        add(accumulated, 1, partition)
    for batch in take_all(accumulated):
        accumulated.on_ack(batch)
    steps.clear()
    (batch,) = add(accumulated)
    assert take_all(accumulated) == [batch]
    accumulated.on_ack(batch)
    assert 0 < len(steps) <= of_one


def test_lingering_partitions_take_no_steps(make: Make, steps: list[PartitionQueue]) -> None:
    """The batches of 2,000 partitions linger; a plan looks only at those that are due."""
    accumulated = make(linger_ms=50)
    for partition in range(2_000):
        add(accumulated, 1, partition, now=1.0)
    (late,) = add(accumulated, 1, 2_000, now=0.99)
    assert plan(accumulated, now=1.0).requests == {}
    steps.clear()
    assert take_all(accumulated, now=1.04) == [late]
    assert {queue.partition for queue in steps} == {2_000}
    assert len(steps) <= 3


def test_requests_in_flight_per_broker_are_limited(make: Make) -> None:
    accumulated = make(max_in_flight=2)
    add(accumulated)
    assert plan(accumulated, in_flight=1).requests
    assert not plan(accumulated, in_flight=2).requests


def test_batches_in_flight_at_the_old_leader_finish_first(make: Make) -> None:
    accumulated = make()
    batches = add(accumulated, 5)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    assert take_all(accumulated) == batches[1:4]

    def moved(topic: str, partition: int, since: float) -> int:
        return 1

    assert accumulated.plan(0, moved, lambda node: 0).requests == {}
    for batch in batches[1:4]:
        accumulated.on_failure(batch, error("NOT_LEADER_OR_FOLLOWER"), 0.0)
    assert list(accumulated.plan(1, moved, lambda node: 0).requests) == [1]


def test_missing_leader_and_missing_producer_id_are_reported(make: Make) -> None:
    accumulated = make()
    add(accumulated)
    found = accumulated.plan(0, lambda topic, partition, since: None, lambda node: 0)
    assert [queue.partition for queue in found.unknown_leaders] == [0]
    accumulated.producer_state.identity = None
    assert plan(accumulated).needs_producer_id
    assert plan(accumulated).requests == {}


def test_leader_must_be_newer_than_the_failure(make: Make) -> None:
    accumulated = make()
    (batch,) = add(accumulated)
    take_all(accumulated)
    accumulated.on_failure(batch, error("NOT_LEADER_OR_FOLLOWER"), 3.0)
    requested: list[float] = []

    def leader_since(topic: str, partition: int, since: float) -> None:
        requested.append(since)

    accumulated.plan(5.0, leader_since, lambda node: 0)
    assert requested == [3.0]


def test_sequence_numbers_wrap_after_the_largest(make: Make) -> None:
    accumulated = make(batch_bytes=10_000)
    add(accumulated, 3)
    accumulated.queues["t", 0].sequence.identity = ProducerIdAndEpoch(7, 0)
    accumulated.queues["t", 0].sequence.next_sequence = LAST_SEQUENCE - 1
    (batch,) = take_all(accumulated)
    assert batch.sequence == LAST_SEQUENCE - 1
    assert accumulated.queues["t", 0].sequence.next_sequence == 1


# --- Failed batches ---


def test_retry_waits_until_no_batch_is_in_flight(make: Make) -> None:
    accumulated = make()
    batches = add(accumulated, 7)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    sent = take_all(accumulated)
    assert sent == batches[1:6]
    accumulated.on_failure(sent[1], LOST, 0.0)
    accumulated.on_failure(sent[0], LOST, 0.0)
    assert take_all(accumulated, now=9.0) == []
    for batch in sent[2:]:
        accumulated.on_failure(batch, LOST, 0.0)
    assert take_all(accumulated, now=9.0) == sent
    assert [batch.sequence for batch in sent] == [1, 2, 3, 4, 5]


def test_batch_out_of_order_is_retried_after_its_predecessor(make: Make) -> None:
    accumulated = make()
    add(accumulated, 4)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    first, second = take_all(accumulated)
    accumulated.on_failure(second, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert not second.future.done()
    accumulated.on_ack(first)
    (again,) = take_all(accumulated)
    assert (again, again.sequence) == (second, 2)


def test_unexplained_sequence_error_fails_the_batch(make: Make) -> None:
    accumulated = make()
    add(accumulated, 2)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    (second,) = take_all(accumulated)
    refused = error("OUT_OF_ORDER_SEQUENCE_NUMBER")
    accumulated.on_failure(second, refused, 0.0)
    assert outcome(second) is refused


def test_partition_restarts_its_sequence_after_a_fatal_failure(make: Make) -> None:
    accumulated = make()
    add(accumulated, 5)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    first, second, third = take_all(accumulated)
    second.data = third.data = b"as sent"
    too_large = error("MESSAGE_TOO_LARGE")
    accumulated.on_failure(first, too_large, 0.0)
    assert outcome(first) is too_large
    # The broker refused `third`. The result of `second` is unknown: it is sent again with its
    # old sequence number.
    accumulated.on_failure(third, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert not third.has_sequence
    accumulated.on_failure(second, LOST, 0.0)
    assert take_all(accumulated, now=9.0) == [second]
    assert (second.identity, second.sequence, second.data) == ((7, 0), 2, b"as sent")
    accumulated.on_ack(second)
    assert take_all(accumulated, now=9.0) == [third]
    assert (third.identity, third.sequence) == ((7, 1), 0)


@pytest.mark.parametrize(
    ("identity", "failure", "after"),
    [
        (ProducerIdAndEpoch(7, 0), error("MESSAGE_TOO_LARGE"), ProducerIdAndEpoch(7, 1)),
        (ProducerIdAndEpoch(7, 0), RequestTimeoutError(""), ProducerIdAndEpoch(7, 1)),
        (ProducerIdAndEpoch(7, 0), LOST, ProducerIdAndEpoch(7, 1)),
        (ProducerIdAndEpoch(7, 5), error("OUT_OF_ORDER_SEQUENCE_NUMBER"), ProducerIdAndEpoch(7, 6)),
        (ProducerIdAndEpoch(7, LAST_EPOCH - 1), LOST, ProducerIdAndEpoch(7, LAST_EPOCH)),
        (ProducerIdAndEpoch(7, LAST_EPOCH), LOST, None),
        (ProducerIdAndEpoch(7, 0), error("UNKNOWN_PRODUCER_ID"), None),
        (ProducerIdAndEpoch(7, 0), error("INVALID_PRODUCER_EPOCH"), None),
    ],
)
def test_failure_decides_the_next_producer_epoch(
    identity: ProducerIdAndEpoch, failure: KprotoError, after: ProducerIdAndEpoch | None
) -> None:
    assert identity_after_failure(identity, failure) == after


def test_exhausted_producer_id_is_replaced_once(make: Make) -> None:
    accumulated = make()
    accumulated.producer_state.identity = ProducerIdAndEpoch(7, LAST_EPOCH)
    for partition in (0, 1):
        add(accumulated, 2, partition)
    for batch in take_all(accumulated):
        accumulated.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    assert plan(accumulated).needs_producer_id
    assert plan(accumulated).requests == {}
    accumulated.producer_state.identity = ProducerIdAndEpoch(8, 0)
    assert [(batch.identity, batch.sequence) for batch in take_all(accumulated)] == [
        ((8, 0), 0)
    ] * 2


def test_batches_that_fail_together_raise_the_epoch_once(make: Make) -> None:
    accumulated = make()
    add(accumulated, 5)
    (begun,) = take_all(accumulated)
    accumulated.on_ack(begun)
    for batch in take_all(accumulated):
        accumulated.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    (last,) = take_all(accumulated)
    assert (last.identity, last.sequence) == ((7, 1), 0)
    assert accumulated.producer_state.identity == (7, 0), "other partitions still use it"


def test_other_partition_keeps_its_epoch(make: Make) -> None:
    accumulated = make()
    add(accumulated, 1, 0)
    add(accumulated, 2, 1)
    one, two = take_all(accumulated)
    accumulated.on_ack(two)
    accumulated.on_failure(one, error("MESSAGE_TOO_LARGE"), 0.0)
    (next_of_two,) = take_all(accumulated)
    assert (next_of_two.identity, next_of_two.sequence) == ((7, 0), 1)


def test_oversized_batch_is_split_down_to_single_records(make: Make) -> None:
    accumulated = make(batch_bytes=10_000)
    (batch,) = set(add(accumulated, 5))
    too_large = error("MESSAGE_TOO_LARGE")
    stored: list[bytes | None] = []
    while not accumulated.queues["t", 0].sequence.must_restart:
        (part,) = take_all(accumulated)
        values = values_of(part)
        assert part.sequence == number_of(values[0]), "each record keeps its sequence number"
        if len(values) > 1 or number_of(values[0]) == 3:
            accumulated.on_failure(part, too_large, 0.0)
        else:
            stored += values
            accumulated.on_ack(part, 10 + part.sequence)
    assert list(map(number_of, stored)) == [0, 1, 2]
    assert batch.ack(1).offset == 11
    assert not batch.future.done()
    (last,) = take_all(accumulated)
    accumulated.on_failure(last, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert take_all(accumulated) == [last]
    assert (last.identity, last.sequence) == ((7, 1), 0)
    accumulated.on_ack(last, 13)
    assert outcome(batch) is too_large
    assert [batch.failure(at) for at in range(5)] == [None, None, None, too_large, None]
    assert batch.ack(4).offset == 13
    assert accumulated.buffered == 0
    assert not accumulated.incomplete


@pytest.mark.parametrize("first", [LOST, error("NOT_ENOUGH_REPLICAS")])
@pytest.mark.parametrize("second", [LOST, error("NOT_ENOUGH_REPLICAS")])
def test_unresolved_batch_after_a_failure_keeps_its_sequence_number(
    make: Make, first: KprotoError, second: KprotoError
) -> None:
    """A new number could store the batch twice, if the old copies arrive late."""
    accumulated = make(batch_bytes=100)
    (known,) = add(accumulated)
    take_all(accumulated)
    accumulated.on_ack(known)
    add(accumulated, now=0.0)
    (failing,) = take_all(accumulated)
    add(accumulated, now=5.0)
    (after,) = take_all(accumulated, now=5.0)
    accumulated.on_failure(failing, first, 5.0)
    accumulated.on_failure(after, second, 5.0)
    accumulated.expire_batches(10.0)
    assert failing.future.done()
    assert take_all(accumulated, now=10.0) == [after]
    accumulated.on_failure(after, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 10.0)
    if first is LOST and second is LOST:
        failure = outcome(after)
        assert isinstance(failure, BrokerResponseError)
        assert "may still be in flight" in str(failure)
    else:
        assert take_all(accumulated, now=10.0) == [after]
        assert (after.identity, after.sequence) == ((7, 1), 0)


def test_expired_batch_fails_in_flight_or_not(make: Make) -> None:
    accumulated = make()
    batches = add(accumulated, 2)
    (sent,) = take_all(accumulated)
    assert plan(accumulated).deadline == 10.0
    accumulated.expire_batches(9.9)
    assert not sent.future.done()
    accumulated.expire_batches(10.0)
    for batch in batches:
        assert isinstance(outcome(batch), RequestTimeoutError)
    assert accumulated.buffered == 0
    assert ("t", 0) in accumulated.active_queues, "the queue waits for the batch in flight"
    accumulated.on_ack(sent)
    assert not accumulated.active_queues
    (last,) = add(accumulated, now=11.0)
    assert take_all(accumulated, now=11.0) == [last]
    assert (last.identity, last.sequence) == ((7, 1), 0)


def test_expired_batch_reports_its_last_failure(make: Make) -> None:
    accumulated = make()
    (batch,) = add(accumulated)
    take_all(accumulated)
    refused = error("NOT_ENOUGH_REPLICAS")
    accumulated.on_failure(batch, refused, 1.0)
    accumulated.expire_batches(10.0)
    assert outcome(batch) is refused


def test_unsendable_batches_fail_at_once_or_wait(make: Make) -> None:
    accumulated = make()
    batches = add(accumulated, 2)
    queue = accumulated.queues["t", 0]
    accumulated.on_queue_failure(queue, error("LEADER_NOT_AVAILABLE"), 1.0)
    found = plan(accumulated, now=1.0)
    assert found.requests == {}
    assert 1.08 <= found.next_at <= 1.12
    denied = error("TOPIC_AUTHORIZATION_FAILED")
    accumulated.on_queue_failure(queue, denied, 2.0)
    assert [outcome(batch) for batch in batches] == [denied, denied]
    assert not accumulated.active_queues
    assert accumulated.producer_state.identity == (7, 0), (
        "nothing was sent, so that the sequence stays valid"
    )


# --- Acknowledgements ---


def timestamps(batch: ProducerBatch) -> list[int]:
    return [batch.ack(at).timestamp for at in range(batch.count)]


def appended_at(accumulated: RecordAccumulator, *at_ms: int) -> ProducerBatch:
    for timestamp in at_ms:
        batch, _ = accumulated.add("t", 0, None, b"v", (), timestamp)
    return batch


@pytest.mark.parametrize("earlier_answer", [None, -1, 99])
def test_timestamps_of_a_duplicate_batch(make: Make, earlier_answer: int | None) -> None:
    """Even with create time, the broker returns the largest timestamp of a duplicate batch."""
    accumulated = make(batch_bytes=10_000)
    if earlier_answer is not None:
        appended_at(accumulated, 1)
        (before,) = take_all(accumulated)
        accumulated.on_ack(before, 0, earlier_answer)
    batch = appended_at(accumulated, 10, 30, 20)
    take_all(accumulated)
    accumulated.on_failure(batch, LOST, 0.0)
    assert take_all(accumulated, 10.0) == [batch]
    accumulated.on_ack(batch, 5, 30)
    assert timestamps(batch) == ([30, 30, 30] if earlier_answer == 99 else [10, 30, 20])


def test_timestamps_of_a_batch_stored_at_its_second_attempt(make: Make) -> None:
    accumulated = make(batch_bytes=10_000)
    batch = appended_at(accumulated, 10, 30, 20)
    take_all(accumulated)
    accumulated.on_failure(batch, LOST, 0.0)
    take_all(accumulated, 10.0)
    accumulated.on_ack(batch, 5, 77)
    assert timestamps(batch) == [77, 77, 77], (
        "differs from all timestamps: the log uses append time"
    )


def test_split_batch_frees_its_bytes_once_it_is_done(make: Make) -> None:
    accumulated = make(batch_bytes=10_000)
    (batch,) = set(add(accumulated, 8))
    take_all(accumulated)
    accumulated.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    parts: list[ProducerBatch] = []
    while not batch.future.done():
        (part,) = take_all(accumulated)
        parts.append(part)
        if part.count > 1:
            accumulated.on_failure(part, error("MESSAGE_TOO_LARGE"), 0.0)
            assert part.content.parts == [], "the new parts have the records"
        else:
            accumulated.on_ack(part, part.sequence)
    assert [batch.ack(at).offset for at in range(8)] == list(range(8))
    assert batch.content.parts == []
    for part in parts:
        assert (part.content.parts, part.data, part.parent) == ([], None, None)
