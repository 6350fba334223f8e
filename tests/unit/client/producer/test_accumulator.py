"""When which batch goes where, and what a failure leads to: decisions, without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from kproto.client.producer.accumulator import Accumulator
from kproto.client.producer.batch import Batch, Delivery
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


Make = Callable[..., Accumulator]


@pytest.fixture
def make(loop: asyncio.AbstractEventLoop) -> Make:
    return lambda **options: accumulator(loop, **options)


# --- What is sent when ---


def test_one_request_holds_a_batch_of_every_partition_that_is_ready(make: Make) -> None:
    waiting = make()
    for partition in range(3):
        add(waiting, 2, partition)
    (queues,) = plan(waiting).requests.values()
    assert [queue.partition for queue in queues] == [0, 1, 2]


def test_each_leader_has_its_own_request(make: Make) -> None:
    waiting = make()
    for partition in range(4):
        add(waiting, 1, partition)
    found = waiting.plan(0, lambda topic, partition, since: partition % 2, lambda node: 0)
    by_node = {node: [q.partition for q in queues] for node, queues in found.requests.items()}
    assert by_node == {0: [0, 2], 1: [1, 3]}


def test_the_first_batch_under_a_producer_id_goes_alone_then_five(make: Make) -> None:
    waiting = make()
    batches = add(waiting, 9)
    assert take_all(waiting) == batches[:1]
    waiting.on_ack(batches[0])
    assert take_all(waiting) == batches[1:6]
    assert [batch.sequence for batch in batches[:6]] == [0, 1, 2, 3, 4, 5]
    waiting.on_ack(batches[1])
    assert take_all(waiting) == batches[6:7]


def test_without_idempotence_one_at_a_time(make: Make) -> None:
    waiting = make(idempotent=False)
    batches = add(waiting, 3)
    for batch in batches:
        assert take_all(waiting) == [batch]
        assert (batch.identity, batch.sequence) == ((-1, -1), -1)
        waiting.on_ack(batch)


def test_a_batch_that_takes_records_waits_for_those_under_way(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    (first,) = add(waiting)
    assert take_all(waiting) == [first]
    waiting.on_ack(first)
    (second,) = add(waiting)
    assert take_all(waiting) == [second]
    (third,) = add(waiting)
    assert take_all(waiting) == []
    assert add(waiting) == [third]
    waiting.on_ack(second)
    assert take_all(waiting) == [third]


def test_a_batch_lingers_unless_it_is_full_or_hurried(make: Make) -> None:
    waiting = make(linger_ms=50)
    (first,) = add(waiting, now=1.0)
    found = plan(waiting, now=1.02)
    assert (found.requests, found.next_at) == ({}, 1.05)
    assert take_all(waiting, now=1.05) == [first]
    waiting.on_ack(first)
    full, part = add(waiting, 2, now=2.0)
    assert take_all(waiting, now=2.0) == [full]
    waiting.on_ack(full)
    waiting.stop_lingering()
    assert take_all(waiting, now=2.0) == [part]


def test_no_more_requests_than_a_broker_may_have(make: Make) -> None:
    waiting = make(max_in_flight=2)
    add(waiting)
    assert plan(waiting, in_flight=1).requests
    assert not plan(waiting, in_flight=2).requests


def test_what_is_at_the_old_leader_comes_back_first(make: Make) -> None:
    waiting = make()
    batches = add(waiting, 5)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    assert take_all(waiting) == batches[1:4]

    def moved(topic: str, partition: int, since: float) -> int:
        return 1

    assert waiting.plan(0, moved, lambda node: 0).requests == {}
    for batch in batches[1:4]:
        waiting.on_failure(batch, error("NOT_LEADER_OR_FOLLOWER"), 0.0)
    assert list(waiting.plan(1, moved, lambda node: 0).requests) == [1]


def test_a_partition_without_a_leader_and_a_producer_without_an_id(make: Make) -> None:
    waiting = make()
    add(waiting)
    found = waiting.plan(0, lambda topic, partition, since: None, lambda node: 0)
    assert [queue.partition for queue in found.unknown_leaders] == [0]
    waiting.producer_state.identity = None
    assert plan(waiting).needs_producer_id
    assert plan(waiting).requests == {}


def test_metadata_must_be_newer_than_a_failure(make: Make) -> None:
    waiting = make()
    (batch,) = add(waiting)
    take_all(waiting)
    waiting.on_failure(batch, error("NOT_LEADER_OR_FOLLOWER"), 3.0)
    asked: list[float] = []

    def led_by(topic: str, partition: int, since: float) -> None:
        asked.append(since)

    waiting.plan(5.0, led_by, lambda node: 0)
    assert asked == [3.0]


def test_sequence_numbers_begin_again_behind_the_largest(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    add(waiting, 3)
    waiting.queues["t", 0].sequence.identity = ProducerIdAndEpoch(7, 0)
    waiting.queues["t", 0].sequence.next_sequence = LAST_SEQUENCE - 1
    (batch,) = take_all(waiting)
    assert batch.sequence == LAST_SEQUENCE - 1
    assert waiting.queues["t", 0].sequence.next_sequence == 1


# --- What comes back ---


def test_all_that_is_under_way_comes_back_before_any_goes_again(make: Make) -> None:
    waiting = make()
    batches = add(waiting, 7)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    sent = take_all(waiting)
    assert sent == batches[1:6]
    waiting.on_failure(sent[1], LOST, 0.0)
    waiting.on_failure(sent[0], LOST, 0.0)
    assert take_all(waiting, now=9.0) == []
    for batch in sent[2:]:
        waiting.on_failure(batch, LOST, 0.0)
    assert take_all(waiting, now=9.0) == sent
    assert [batch.sequence for batch in sent] == [1, 2, 3, 4, 5]


def test_a_batch_that_overtook_another_goes_again(make: Make) -> None:
    waiting = make()
    add(waiting, 4)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    first, second = take_all(waiting)
    waiting.on_failure(second, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert not second.future.done()
    waiting.on_ack(first)
    (again,) = take_all(waiting)
    assert (again, again.sequence) == (second, 2)


def test_a_number_that_no_earlier_batch_explains_is_told(make: Make) -> None:
    waiting = make()
    add(waiting, 2)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    (second,) = take_all(waiting)
    refused = error("OUT_OF_ORDER_SEQUENCE_NUMBER")
    waiting.on_failure(second, refused, 0.0)
    assert outcome(second) is refused


def test_behind_a_batch_that_failed_for_good_the_partition_begins_anew(make: Make) -> None:
    waiting = make()
    add(waiting, 5)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    first, second, third = take_all(waiting)
    second.data = third.data = b"as sent"
    too_large = error("MESSAGE_TOO_LARGE")
    waiting.on_failure(first, too_large, 0.0)
    assert outcome(first) is too_large
    # The one was refused, of the other nobody knows: it goes again under its old number.
    waiting.on_failure(third, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert not third.has_sequence
    waiting.on_failure(second, LOST, 0.0)
    assert take_all(waiting, now=9.0) == [second]
    assert (second.identity, second.sequence, second.data) == ((7, 0), 2, b"as sent")
    waiting.on_ack(second)
    assert take_all(waiting, now=9.0) == [third]
    assert (third.identity, third.sequence) == ((7, 1), 0)


@pytest.mark.parametrize(
    ("identity", "failure", "behind"),
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
def test_what_comes_behind_a_failure(
    identity: ProducerIdAndEpoch, failure: KprotoError, behind: ProducerIdAndEpoch | None
) -> None:
    assert identity_after_failure(identity, failure) == behind


def test_a_producer_id_that_is_used_up_is_asked_for_once(make: Make) -> None:
    waiting = make()
    waiting.producer_state.identity = ProducerIdAndEpoch(7, LAST_EPOCH)
    for partition in (0, 1):
        add(waiting, 2, partition)
    for batch in take_all(waiting):
        waiting.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    assert plan(waiting).needs_producer_id
    assert plan(waiting).requests == {}
    waiting.producer_state.identity = ProducerIdAndEpoch(8, 0)
    assert [(batch.identity, batch.sequence) for batch in take_all(waiting)] == [((8, 0), 0)] * 2


def test_all_that_fail_together_end_one_epoch(make: Make) -> None:
    waiting = make()
    add(waiting, 5)
    (begun,) = take_all(waiting)
    waiting.on_ack(begun)
    for batch in take_all(waiting):
        waiting.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    (last,) = take_all(waiting)
    assert (last.identity, last.sequence) == ((7, 1), 0)
    assert waiting.producer_state.identity == (7, 0), "other partitions go on with it"


def test_another_partition_keeps_its_epoch(make: Make) -> None:
    waiting = make()
    add(waiting, 1, 0)
    add(waiting, 2, 1)
    one, two = take_all(waiting)
    waiting.on_ack(two)
    waiting.on_failure(one, error("MESSAGE_TOO_LARGE"), 0.0)
    (next_of_two,) = take_all(waiting)
    assert (next_of_two.identity, next_of_two.sequence) == ((7, 0), 1)


def test_a_batch_that_is_too_large_is_split_down_to_single_records(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    (batch,) = set(add(waiting, 5))
    too_large = error("MESSAGE_TOO_LARGE")
    stored: list[bytes | None] = []
    while not waiting.queues["t", 0].sequence.must_restart:
        (part,) = take_all(waiting)
        values = values_of(part)
        assert part.sequence == number_of(values[0]), "each keeps the number that it had"
        if len(values) > 1 or number_of(values[0]) == 3:
            waiting.on_failure(part, too_large, 0.0)
        else:
            stored += values
            waiting.on_ack(part, 10 + part.sequence)
    assert list(map(number_of, stored)) == [0, 1, 2]
    assert batch.ack(1).offset == 11
    assert not batch.future.done()
    (last,) = take_all(waiting)
    waiting.on_failure(last, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0.0)
    assert take_all(waiting) == [last]
    assert (last.identity, last.sequence) == ((7, 1), 0)
    waiting.on_ack(last, 13)
    assert outcome(batch) is too_large
    assert [batch.failure(at) for at in range(5)] == [None, None, None, too_large, None]
    assert batch.ack(4).offset == 13
    assert waiting.buffered == 0
    assert not waiting.incomplete


@pytest.mark.parametrize("first", [LOST, error("NOT_ENOUGH_REPLICAS")])
@pytest.mark.parametrize("second", [LOST, error("NOT_ENOUGH_REPLICAS")])
def test_what_the_network_may_hold_behind_a_failed_batch_gets_no_new_number(
    make: Make, first: KprotoError, second: KprotoError
) -> None:
    """Were both copies to come, both would be stored, and the second again under its new number."""
    waiting = make(batch_bytes=100)
    (known,) = add(waiting)
    take_all(waiting)
    waiting.on_ack(known)
    add(waiting, now=0.0)
    (failing,) = take_all(waiting)
    add(waiting, now=5.0)
    (behind,) = take_all(waiting, now=5.0)
    waiting.on_failure(failing, first, 5.0)
    waiting.on_failure(behind, second, 5.0)
    waiting.expire_batches(10.0)
    assert failing.future.done()
    assert take_all(waiting, now=10.0) == [behind]
    waiting.on_failure(behind, error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 10.0)
    if first is LOST and second is LOST:
        failure = outcome(behind)
        assert isinstance(failure, BrokerResponseError)
        assert "may still be in flight" in str(failure)
    else:
        assert take_all(waiting, now=10.0) == [behind]
        assert (behind.identity, behind.sequence) == ((7, 1), 0)


def test_what_had_its_time_is_told_under_way_or_not(make: Make) -> None:
    waiting = make()
    batches = add(waiting, 2)
    (sent,) = take_all(waiting)
    assert plan(waiting).deadline == 10.0
    waiting.expire_batches(9.9)
    assert not sent.future.done()
    waiting.expire_batches(10.0)
    for batch in batches:
        assert isinstance(outcome(batch), RequestTimeoutError)
    assert waiting.buffered == 0
    assert ("t", 0) in waiting.busy, "the queue waits for what is under way"
    waiting.on_ack(sent)
    assert not waiting.busy
    (after,) = add(waiting, now=11.0)
    assert take_all(waiting, now=11.0) == [after]
    assert (after.identity, after.sequence) == ((7, 1), 0)


def test_the_last_failure_is_the_reason(make: Make) -> None:
    waiting = make()
    (batch,) = add(waiting)
    take_all(waiting)
    refused = error("NOT_ENOUGH_REPLICAS")
    waiting.on_failure(batch, refused, 1.0)
    waiting.expire_batches(10.0)
    assert outcome(batch) is refused


def test_what_cannot_go_at_all_fails_at_once_or_waits(make: Make) -> None:
    waiting = make()
    batches = add(waiting, 2)
    queue = waiting.queues["t", 0]
    waiting.failed(queue, error("LEADER_NOT_AVAILABLE"), 1.0)
    found = plan(waiting, now=1.0)
    assert found.requests == {}
    assert 1.08 <= found.next_at <= 1.12
    denied = error("TOPIC_AUTHORIZATION_FAILED")
    waiting.failed(queue, denied, 2.0)
    assert [outcome(batch) for batch in batches] == [denied, denied]
    assert not waiting.busy
    assert waiting.producer_state.identity == (7, 0), (
        "nothing was sent, so that the numbers still fit"
    )


def test_failed_deliveries_that_nobody_looked_at_are_kept(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    batch, first = waiting.add("t", 0, None, b"1", (), 0)
    _, second = waiting.add("t", 0, None, b"2", (), 0)
    batch.deliveries = [Delivery(batch, first), Delivery(batch, second)]
    batch.deliveries[0].is_retrieved = True
    waiting.failed(waiting.queues["t", 0], error("TOPIC_AUTHORIZATION_FAILED"), 0.0)
    (failure,) = waiting.unretrieved_failures()
    assert [record.value for record in failure.records] == [b"2"]
    assert waiting.unretrieved_failures() == []


def test_failures_that_somebody_looked_at_are_not_kept(make: Make) -> None:
    waiting = make(batch_bytes=100)
    for at in range(5_000):
        (batch,) = add(waiting, 1)
        batch.deliveries = [Delivery(batch, 0)]
        batch.deliveries[0].is_retrieved = at % 100 != 0
        waiting.failed(waiting.queues["t", 0], error("TOPIC_AUTHORIZATION_FAILED"), 0.0)
        assert len(waiting.unretrieved) <= 1_000
    assert len(waiting.unretrieved_failures()) == 50


# --- What an acknowledgement says ---


def timestamps(batch: Batch) -> list[int]:
    return [batch.ack(at).timestamp for at in range(batch.count)]


def given_at(waiting: Accumulator, *at_ms: int) -> Batch:
    for timestamp in at_ms:
        batch, _ = waiting.add("t", 0, None, b"v", (), timestamp)
    return batch


@pytest.mark.parametrize("told_before", [None, -1, 99])
def test_the_time_of_a_batch_that_the_broker_had_already(
    make: Make, told_before: int | None
) -> None:
    """To a duplicate it answers the largest timestamp of the batch, also with create time."""
    waiting = make(batch_bytes=10_000)
    if told_before is not None:
        given_at(waiting, 1)
        (before,) = take_all(waiting)
        waiting.on_ack(before, 0, told_before)
    batch = given_at(waiting, 10, 30, 20)
    take_all(waiting)
    waiting.on_failure(batch, LOST, 0.0)
    assert take_all(waiting, 10.0) == [batch]
    waiting.on_ack(batch, 5, 30)
    assert timestamps(batch) == ([30, 30, 30] if told_before == 99 else [10, 30, 20])


def test_the_time_of_a_batch_that_was_stored_at_its_second_attempt(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    batch = given_at(waiting, 10, 30, 20)
    take_all(waiting)
    waiting.on_failure(batch, LOST, 0.0)
    take_all(waiting, 10.0)
    waiting.on_ack(batch, 5, 77)
    assert timestamps(batch) == [77, 77, 77], "no timestamp of its own: the log has append time"


def test_what_was_split_keeps_no_bytes_once_it_is_settled(make: Make) -> None:
    waiting = make(batch_bytes=10_000)
    (batch,) = set(add(waiting, 8))
    take_all(waiting)
    waiting.on_failure(batch, error("MESSAGE_TOO_LARGE"), 0.0)
    parts: list[Batch] = []
    while not batch.future.done():
        (part,) = take_all(waiting)
        parts.append(part)
        if part.count > 1:
            waiting.on_failure(part, error("MESSAGE_TOO_LARGE"), 0.0)
            assert part.content.parts == [], "its own parts have them"
        else:
            waiting.on_ack(part, part.sequence)
    assert [batch.ack(at).offset for at in range(8)] == list(range(8))
    assert batch.content.parts == []
    for part in parts:
        assert (part.content.parts, part.data, part.parent) == ([], None, None)
