"""Tests the transaction coordinator: timeouts, expiration, moves, and partitions without a leader.

The tests send requests to the handlers; `Producer.version` 2 stands for clients that bump the epoch
at the end of each transaction (KIP-890), and version 0 stands for older clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.broker.leader_and_isr import NO_LEADER
from kproto.broker.settings import BrokerSettings
from kproto.broker.transactions.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TRANSACTION_TOPIC_CONFIGS,
)
from kproto.records import RecordBatch
from tests.support.batches import batch_bytes

from .transaction_driver import Play, Producer

VERSIONS = pytest.mark.parametrize("version", [0, 2])


def begin(play: Play, version: int = 2, *, timeout_ms: int = 60_000) -> Producer:
    """Begins a transaction with value a in t-0 and b in t-1."""
    producer = Producer(play, version=version)
    assert producer.init(timeout_ms=timeout_ms) == "NONE"
    if version < 2:
        assert producer.add(("t", 0), ("t", 1)) == "NONE"
    for index, value in enumerate("ab"):
        assert producer.produce("t", index, value) == "NONE"
    return producer


def stored_ids(play: Play) -> list[tuple[str, bool]]:
    """Returns (transactional id, whether the record is a tombstone) for each stored record.

    Reads the partition of `__transaction_state` that stores id tx.
    """
    return [
        ((record.key or b"")[4:].decode(), record.value is None)
        for batch in play.log_of().log
        for record in batch.records()
    ]


# The life of a transaction


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_written_before_the_response(version: int, *, commit: bool) -> None:
    play = Play()
    producer = begin(play, version)
    assert play.described() == ("Ongoing", {("t", 0), ("t", 1)})
    assert [play.read("t", index) for index in (0, 1)] == [[], []]
    assert producer.end(commit=commit) == "NONE"
    assert play.described() == ("CompleteCommit" if commit else "CompleteAbort", set())
    assert [play.read("t", index) for index in (0, 1)] == ([["a"], ["b"]] if commit else [[], []])
    assert [play.read("t", index, committed=False) for index in (0, 1)] == [["a"], ["b"]]
    kind, epoch = "commit" if commit else "abort", 1 if version >= 2 else 0
    assert play.markers("t", 0) == play.markers("t", 1) == [f"{kind} 0 {epoch}"]


@VERSIONS
def test_each_transition_is_stored_before_it_takes_effect(version: int) -> None:
    play = Play()
    producer = begin(play, version)
    # The record of InitProducerId, and one for each request that adds partitions.
    added = 1 if version < 2 else 2
    assert len(stored_ids(play)) == 1 + added
    producer.end()
    assert len(stored_ids(play)) == 3 + added, "prepared and complete"


@VERSIONS
def test_producer_goes_on_with_the_next_transaction(version: int) -> None:
    play = Play()
    producer = begin(play, version)
    for number in range(3):
        assert producer.end(commit=number != 1) == "NONE"
        if version < 2:
            assert producer.add(("t", 0)) == "NONE"
        assert producer.produce("t", 0, f"c{number}") == "NONE"
    assert play.read("t") == ["a", "c1"]
    assert play.latest("t") == play.partition("t").log.end_offset - 1
    producer.end()
    assert play.read("t") == ["a", "c1", "c2"]
    assert producer.pair == (0, 4 if version >= 2 else 0)


def test_second_producer_fences_the_first() -> None:
    play = Play()
    first = begin(play)
    second = Producer(play)
    assert second.init() == "CONCURRENT_TRANSACTIONS", "the transaction is aborted now"
    assert play.described() == ("CompleteAbort", set())
    assert second.init() == "NONE"
    assert second.producer_id == first.producer_id
    assert second.epoch > first.epoch
    assert first.produce("t", 0, "late") == "INVALID_PRODUCER_EPOCH"
    assert first.add(("t", 0)) == "PRODUCER_FENCED"
    assert first.add_offsets() == "PRODUCER_FENCED"
    assert first.commit_offset(1) == "INVALID_PRODUCER_EPOCH"
    assert first.end() == "PRODUCER_FENCED"
    assert first.init(continues=True) == "PRODUCER_FENCED"
    assert second.produce("t", 0, "new") == "NONE"
    second.end()
    assert play.read("t") == ["new"]


@VERSIONS
def test_transaction_without_partitions(version: int) -> None:
    play = Play()
    producer = Producer(play, version=version)
    producer.init()
    assert producer.end(commit=True) == "INVALID_TXN_STATE"
    assert producer.end(commit=False) == ("NONE" if version >= 2 else "INVALID_TXN_STATE")
    assert play.described() == ("CompleteAbort" if version >= 2 else "Empty", set())


# Timeouts


SEEN_BY: list[tuple[str, Callable[[Play], object]]] = [
    ("Fetch", lambda play: play.read("t")),
    ("ListOffsets", lambda play: play.latest("t")),
    ("OffsetFetch", lambda play: play.offsets(require_stable=True)),
    ("DescribeTransactions", lambda play: play.described()),
    ("InitProducerId", lambda play: Producer(play).init()),
]


@VERSIONS
@pytest.mark.parametrize("see", [it[1] for it in SEEN_BY], ids=[it[0] for it in SEEN_BY])
async def test_timed_out_transaction_is_aborted(
    version: int, see: Callable[[Play], object]
) -> None:
    play = Play(transaction_version=version)
    begin(play, version, timeout_ms=1000)
    await play.wait(1000)
    play.read("t")
    assert play.markers("t") == [], "the timeout is not over yet"
    await play.wait(1)
    see(play)
    assert play.markers("t", 0) == play.markers("t", 1) == ["abort 0 1"]
    assert play.latest("t") == play.partition("t").log.end_offset


@VERSIONS
async def test_producer_of_a_timed_out_transaction_is_fenced(version: int) -> None:
    play = Play(transaction_version=version)
    producer = begin(play, version, timeout_ms=1000)
    await play.wait(1001)
    assert play.described() == ("CompleteAbort", set())
    assert producer.produce("t", 0, "late") == "INVALID_PRODUCER_EPOCH"
    assert producer.add(("t", 0)) == "PRODUCER_FENCED"
    # A client that bumps the epoch has the epoch of a repeated request (KIP-890).
    assert producer.end() == ("INVALID_TXN_STATE" if version >= 2 else "PRODUCER_FENCED")
    assert play.read("t") == []


async def test_timeout_starts_with_the_first_partition() -> None:
    play = Play()
    producer = Producer(play)
    producer.init(timeout_ms=1000)
    await play.wait(5000)
    assert producer.produce("t", 0, "a") == "NONE"
    await play.wait(1000)
    assert producer.produce("t", 1, "b") == "NONE", "a further partition does not extend it"
    await play.wait(1)
    assert play.described() == ("CompleteAbort", set())


@pytest.mark.parametrize(
    ("timeout_ms", "expected"),
    [
        (-1, "INVALID_TRANSACTION_TIMEOUT"),
        (0, "INVALID_TRANSACTION_TIMEOUT"),
        (1, "NONE"),
        (5000, "NONE"),
        (5001, "INVALID_TRANSACTION_TIMEOUT"),
    ],
)
def test_transaction_timeout_has_bounds(timeout_ms: int, expected: str) -> None:
    play = Play(transaction_max_timeout_ms=5000)
    assert Producer(play).init(timeout_ms=timeout_ms) == expected


# Expiration


@VERSIONS
async def test_idle_id_expires_with_a_tombstone(version: int) -> None:
    play = Play(transactional_id_expiration_ms=1000)
    producer = begin(play, version)
    producer.end()
    await play.wait(999)
    assert play.described() == ("CompleteCommit", set())
    await play.wait(1)
    assert play.described() == ("TRANSACTIONAL_ID_NOT_FOUND", set())
    assert stored_ids(play)[-1] == ("tx", True)
    assert producer.end() == "INVALID_PRODUCER_ID_MAPPING"
    assert producer.add(("t", 0)) == "INVALID_PRODUCER_ID_MAPPING"
    play.move()
    assert play.described() == ("TRANSACTIONAL_ID_NOT_FOUND", set())
    assert producer.init() == "NONE"
    assert producer.pair == (1, 0), "the id is new"


async def test_id_with_an_ongoing_transaction_does_not_expire() -> None:
    play = Play(transactional_id_expiration_ms=1000)
    producer = begin(play, timeout_ms=10_000)
    await play.wait(9000)
    assert play.described()[0] == "Ongoing"
    assert producer.end() == "NONE"
    await play.wait(1000)
    assert play.described() == ("TRANSACTIONAL_ID_NOT_FOUND", set())


async def test_id_is_kept_if_its_tombstone_cannot_be_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    play = Play(transactional_id_expiration_ms=1000)
    begin(play).end()
    await play.wait(1000)
    for node in (2, 3):
        play.state.stop(node)
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert play.described() == ("CompleteCommit", set())
    assert any("transactional id tx: " in message for message in caplog.messages)
    play.state.start(2)
    assert play.described() == ("TRANSACTIONAL_ID_NOT_FOUND", set())


# Moves of the coordinator


STEPS: list[tuple[str, Callable[[Producer], str]]] = [
    ("InitProducerId", lambda it: it.init()),
    ("AddPartitionsToTxn", lambda it: it.add(("t", 0), ("t", 1))),
    ("Produce", lambda it: it.produce("t", 0, "a")),
    ("AddOffsetsToTxn", lambda it: it.add_offsets()),
    ("TxnOffsetCommit", lambda it: it.commit_offset(5)),
    ("EndTxn", lambda it: it.end()),
    ("next Produce", lambda it: it.produce("t", 1, "b") if it.version >= 2 else "NONE"),
]


@VERSIONS
@pytest.mark.parametrize("before", [*range(len(STEPS) + 1), None])
def test_transaction_survives_a_move_of_the_coordinator(version: int, before: int | None) -> None:
    """Moves the coordinator before step `before`, or before every step if `before` is None."""
    play = Play()
    producer = Producer(play, version=version)
    for at, (name, step) in enumerate(STEPS):
        if before in (at, None):
            play.move()
        assert step(producer) == "NONE", name
    play.move()
    assert play.read("t") == ["a"]
    assert play.read("t", 1) == []
    assert play.offsets(require_stable=True) == {"t-0": 5}
    expected = ("Ongoing", {("t", 1)}) if version >= 2 else ("CompleteCommit", set())
    assert play.described() == expected
    assert producer.pair == (0, 1 if version >= 2 else 0)


def test_former_coordinator_refuses_requests() -> None:
    play = Play()
    producer = begin(play)
    former = play.find()
    play.move()
    producer._node = lambda: former  # type: ignore[method-assign]
    assert producer.init() == "NOT_COORDINATOR"
    assert producer.add(("t", 0)) == "NOT_COORDINATOR"
    assert producer.add_offsets() == "NOT_COORDINATOR"
    assert producer.end() == "NOT_COORDINATOR"
    del producer._node
    assert producer.end() == "NONE"


@VERSIONS
async def test_timeouts_are_handled_after_a_move(version: int) -> None:
    play = Play(transaction_version=version)
    begin(play, version, timeout_ms=1000)
    play.move()
    await play.wait(1001)
    assert play.read("t") == []
    assert play.markers("t") == ["abort 0 1"], "a Fetch loads the id again"


def test_ids_are_lost_with_their_topic() -> None:
    play = Play()
    producer = begin(play)
    producer.end()
    play.state.delete_topic(play.state.topics.named(TRANSACTION_TOPIC), play.now)
    assert producer.end() == "INVALID_PRODUCER_ID_MAPPING", "the look-up creates the topic again"
    play.state.delete_topic(play.state.topics.named(TRANSACTION_TOPIC), play.now)
    play.state.topics.add(play.state.plan_topic(TRANSACTION_TOPIC, 1))
    assert play.read("t") == ["a"]
    assert producer.init() == "NONE"
    assert producer.pair == (1, 0)


def test_truncation_brings_the_former_state_back() -> None:
    play = Play()
    producer = begin(play)
    producer.end()
    log = play.log_of()
    log.truncate(log.log.end_offset - 2)
    assert play.described() == ("Ongoing", {("t", 0), ("t", 1)})


def test_broken_batches_are_skipped_when_loaded(caplog: pytest.LogCaptureFixture) -> None:
    play = Play()
    begin(play).end()
    log = play.log_of().log
    broken = bytearray(batch_bytes(compression="gzip"))
    broken[-4:] = b"\0\0\0\0"
    log.append(RecordBatch(bytes(broken)), 0)
    log.append(RecordBatch(batch_bytes()), 0)
    play.move()
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert play.described() == ("CompleteCommit", set())
    assert any("skipped a batch" in message for message in caplog.messages)


# The topic


def test_topic_is_created_by_the_first_lookup() -> None:
    play = Play(transaction_state_log_num_partitions=7)
    assert play.state.topics.get(TRANSACTION_TOPIC) is None
    assert {play.find(f"tx{number}") for number in range(30)} == {1, 2, 3}
    topic = play.state.topics.named(TRANSACTION_TOPIC)
    assert (topic.is_internal, len(topic.partitions)) == (True, 7)
    assert topic.config.overrides == TRANSACTION_TOPIC_CONFIGS


def test_transaction_version_is_validated() -> None:
    with pytest.raises(ConfigurationError, match="transaction_version is 3: take 0, 1 or 2"):
        BrokerSettings(transaction_version=3)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 2),
        ({"release": "3.9.0"}, 0),
        ({"release": "4.0.0"}, 2),
        ({"release": "3.9.0", "transaction_version": 1}, 1),
        ({"transaction_version": 0}, 0),
    ],
)
def test_transaction_version_depends_on_the_release(settings: Any, expected: int) -> None:
    assert BrokerSettings(**settings).transaction_version_level == expected


def test_no_coordinator_while_the_partition_has_no_leader() -> None:
    play = Play(default_replication_factor=1)
    producer = begin(play)
    for node in (1, 2, 3):
        play.state.stop(node)
    assert play.coordinator.coordinator("tx") == NO_LEADER
    with pytest.raises(Exception, match="COORDINATOR_NOT_AVAILABLE"):
        play.metadata()
    play.coordinator.advance(play.now)
    for node in (1, 2, 3):
        play.state.start(node)
    assert producer.end() == "NONE"


# Partitions that accept no marker


@VERSIONS
@pytest.mark.parametrize("moves", [False, True])
def test_marker_waits_for_a_leader(version: int, *, moves: bool) -> None:
    play = Play()
    producer = begin(play, version)
    if version < 2:
        producer.add(("s", 1))
    assert producer.produce("s", 1, "c") == "NONE"
    play.state.stop(2)
    assert producer.end() == "NONE"
    assert play.described() == ("PrepareCommit", {("s", 1)})
    assert (play.read("t"), play.read("t", 1)) == (["a"], ["b"])
    assert Producer(play).init() == "CONCURRENT_TRANSACTIONS"
    assert producer.add(("t", 0)) == "CONCURRENT_TRANSACTIONS"
    assert producer.produce("t", 0, "too soon") == "NOT_ENOUGH_REPLICAS"
    if moves:
        play.move()
        if play.find() == 2:
            play.move()
    play.state.start(2)
    assert play.read("s", 1) == ["c"], "a Fetch makes the coordinator try again"
    assert play.described() == ("CompleteCommit", set())
    assert producer.init(continues=True) == "NONE"
    assert (play.read("t"), play.read("t", 1)) == (["a"], ["b"])


def test_marker_waits_for_an_in_sync_replica() -> None:
    play = Play()
    producer = begin(play)
    play.state.topics.named("t").config = play.state.topics.named("t").config.__class__(
        {"min.insync.replicas": "3"}, 1_000_000
    )
    play.state.stop(3)
    assert producer.end() == "NONE"
    assert play.described() == ("PrepareCommit", {("t", 0), ("t", 1)})
    play.state.start(3)
    assert play.described() == ("CompleteCommit", set())
    assert play.read("t") == ["a"]


def test_deleted_partition_needs_no_marker() -> None:
    play = Play()
    producer = begin(play)
    assert producer.produce("s", 0, "c") == "NONE"
    play.state.delete_topic(play.state.topics.named("s"), play.now)
    assert producer.end() == "NONE"
    assert play.described() == ("CompleteCommit", set())


def test_newer_producer_epoch_needs_no_marker() -> None:
    play = Play()
    producer = begin(play)
    batch = batch_bytes(producer_id=0, producer_epoch=9, base_sequence=0)
    states = play.partition("t").producer_states
    states.update(RecordBatch(batch), 1, 0, 0)
    assert producer.end() == "NONE"
    assert play.described() == ("CompleteCommit", set())
    assert (play.markers("t", 0), play.markers("t", 1)) == ([], ["commit 0 1"])


# Records that cannot be stored


@VERSIONS
@pytest.mark.parametrize(
    ("name", "step"),
    [it for it in STEPS if it[0] in ("InitProducerId", "AddPartitionsToTxn", "EndTxn")],
)
def test_transition_has_no_effect_if_too_few_replicas_are_in_sync(
    version: int, name: str, step: Callable[[Producer], str]
) -> None:
    play = Play()
    producer = Producer(play, version=version)
    producer.init()
    if name == "EndTxn":
        producer.add(("t", 0), ("t", 1))
    before = play.described(), producer.pair, len(stored_ids(play))
    for node in (2, 3):
        play.state.stop(node)
    assert step(producer) == "COORDINATOR_NOT_AVAILABLE"
    assert (play.described(), producer.pair, len(stored_ids(play))) == before
    play.state.start(2)
    assert step(producer) == "NONE"


@VERSIONS
def test_full_storage_is_not_coordinator(version: int) -> None:
    play = Play(max_stored_bytes=40_000)
    producer = begin(play, version)
    end_offset = play.log_of().log.end_offset
    play.state.storage_limit.take(40_000 - play.state.storage_limit.used - 100)
    assert producer.end() == "NOT_COORDINATOR"
    assert play.described()[0] == "Ongoing"
    assert play.log_of().log.end_offset == end_offset
    play.state.storage_limit.release(10_000)
    assert producer.end() == "NONE"
    assert play.read("t") == ["a"]


def test_marker_waits_while_the_storage_is_full() -> None:
    sizes: list[int] = []
    for is_stopped in (True, False):
        play = Play(max_stored_bytes=1_000_000)
        limit = play.state.storage_limit
        producer = Producer(play)
        producer.init()
        producer.produce("s", 1, "a")
        if is_stopped:  # without its marker, EndTxn stores one record
            play.state.stop(2)
        else:
            limit.take(limit.limit - limit.used - sizes[0])
        before = limit.used
        assert producer.end() == "NONE"
        sizes.append(limit.used - before)
    assert sizes[0] == sizes[1]
    assert play.described() == ("PrepareCommit", {("s", 1)})
    assert play.markers("s", 1) == []
    limit.release(limit.used // 2)
    assert play.described() == ("CompleteCommit", set())
    assert (play.markers("s", 1), play.read("s", 1)) == (["commit 0 1"], ["a"])


def test_too_large_record_is_unknown_server_error() -> None:
    play = Play()
    producer = Producer(play)
    producer.init()
    topic = play.state.topics.named(TRANSACTION_TOPIC)
    topic.config = topic.config.__class__({"max.message.bytes": "10"}, 1_000_000)
    assert producer.add(("t", 0)) == "UNKNOWN_SERVER_ERROR"
    assert play.described() == ("Empty", set())


@VERSIONS
def test_failed_fence_bumps_the_epoch_once(version: int) -> None:
    play = Play(transaction_version=version)
    first = begin(play, version)
    second = Producer(play, version=version)
    for node in (2, 3):
        play.state.stop(node)
    for _ in range(3):
        assert second.init() == "COORDINATOR_NOT_AVAILABLE"
        assert play.metadata().state.label == "Ongoing"
        assert play.metadata().epoch == (0 if version >= 2 else 1)
    play.state.start(2)
    assert second.init() == "CONCURRENT_TRANSACTIONS"
    assert second.init() == "NONE"
    assert second.pair == (0, 2)
    assert first.add(("t", 0)) == "PRODUCER_FENCED"
    assert play.markers("t") == ["abort 0 1"]
