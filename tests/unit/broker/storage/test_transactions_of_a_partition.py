"""Tests the transactions of a partition: markers, last stable offset, and aborted transactions.

Source: KIP-98, KIP-890 and KIP-1228 (epochs of markers). The checks of markers are those of Kafka's
ProducerAppendInfo.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import BrokerResponseError
from kproto.broker.leader_and_isr import LeaderAndIsr
from kproto.broker.storage.log_append import append_records
from kproto.broker.storage.partition import Partition
from kproto.broker.storage.producer_state import AbortedTxn
from kproto.broker.topic_configs import TopicConfig
from kproto.messages.leader_change_message import LeaderChangeMessage
from kproto.records import RecordBatch, encode_batch
from kproto.stored.control_records import ControlRecord, ControlRecordType, encode_control_record
from kproto.stored.transaction_markers import TxnMarker, txn_marker_of
from tests.support.batches import TIMESTAMP, batch_bytes

CONFIG = TopicConfig({}, 1_000_000)


class Log:
    """A partition, and the next sequence number of each producer."""

    def __init__(self) -> None:
        self.partition = Partition(0)
        self.sequences: dict[int, int] = {}

    def produce(
        self, producer: int, *, epoch: int = 0, count: int = 1, is_transactional: bool = True
    ) -> str:
        """Appends a batch of a producer; returns the name of the error."""
        sequence = self.sequences.get(producer, 0)
        records = batch_bytes(
            count,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        try:
            append_records(self.partition, CONFIG, records, 9, TIMESTAMP)
        except BrokerResponseError as error:
            return error.name
        self.sequences[producer] = sequence + count
        return "NONE"

    def end(
        self,
        producer: int,
        *,
        is_commit: bool,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        version: int = 0,
    ) -> str:
        """Appends a marker; returns the name of the error."""
        marker = TxnMarker(producer, epoch, is_commit, coordinator_epoch, version)
        try:
            self.partition.end_transaction(marker, TIMESTAMP)
        except BrokerResponseError as error:
            return error.name
        if version >= 2:
            self.sequences[producer] = 0
        return "NONE"

    @property
    def stable(self) -> int:
        return self.partition.last_stable_offset

    @property
    def aborted(self) -> list[tuple[int, int, int]]:
        """Returns producer id, first offset and marker offset of each aborted transaction."""
        end = self.partition.log.end_offset
        found = self.partition.producer_states.aborted_transactions(0, end)
        return [(each.producer_id, each.first_offset, each.last_offset) for each in found]


def test_last_stable_offset_is_the_first_offset_of_all_ongoing_transactions() -> None:
    log = Log()
    log.produce(9, is_transactional=False, count=2)
    assert log.stable == 2
    log.produce(7, count=2)
    log.produce(8)
    log.produce(7)
    assert (log.stable, log.partition.high_watermark) == (2, 6)
    assert log.end(7, is_commit=True) == "NONE"
    assert log.stable == 4, "the transaction of producer 8 is still open"
    log.produce(7)
    assert log.end(8, is_commit=False) == "NONE"
    assert log.stable == 7, "the second transaction of producer 7 begins here"
    assert log.end(7, is_commit=True) == "NONE"
    assert log.stable == log.partition.high_watermark == 10
    assert log.aborted == [(8, 4, 8)]


def test_idempotent_producer_does_not_hold_back_the_last_stable_offset() -> None:
    log = Log()
    log.produce(7, is_transactional=False)
    assert log.stable == 1
    assert log.partition.producer_states.first_unstable_offset is None


def test_records_outside_of_the_transaction_are_refused_while_it_is_ongoing() -> None:
    log = Log()
    log.produce(7)
    assert log.produce(7, is_transactional=False) == "INVALID_TXN_STATE"
    log.end(7, is_commit=True)
    assert log.produce(7, is_transactional=False) == "NONE"


def test_transaction_is_ongoing_only_for_its_producer_and_epoch() -> None:
    log = Log()
    states = log.partition.producer_states
    assert not states.has_ongoing_transaction(7, 0)
    log.produce(7)
    assert states.has_ongoing_transaction(7, 0)
    assert not states.has_ongoing_transaction(7, 1)
    assert not states.has_ongoing_transaction(8, 0)
    log.end(7, is_commit=False)
    assert not states.has_ongoing_transaction(7, 0)


@pytest.mark.parametrize(
    ("is_ongoing", "epoch", "version", "expected"),
    [
        (True, 4, 0, "INVALID_PRODUCER_EPOCH"),
        (True, 5, 0, "NONE"),
        (True, 6, 0, "NONE"),
        (True, 4, 2, "INVALID_PRODUCER_EPOCH"),
        (True, 5, 2, "INVALID_PRODUCER_EPOCH"),
        (True, 6, 2, "NONE"),
        (False, 4, 0, "INVALID_PRODUCER_EPOCH"),
        (False, 5, 0, "NONE"),
        (False, 4, 2, "INVALID_PRODUCER_EPOCH"),
        (False, 5, 2, "NONE"),
        (False, 6, 2, "NONE"),
    ],
)
def test_epoch_of_a_marker_is_checked_by_transaction_version(
    is_ongoing: bool, epoch: int, version: int, expected: str
) -> None:
    log = Log()
    assert log.produce(7, epoch=5, is_transactional=is_ongoing) == "NONE"
    assert log.end(7, is_commit=True, epoch=epoch, version=version) == expected
    assert log.partition.log.end_offset == (2 if expected == "NONE" else 1)
    assert log.stable == (log.partition.log.end_offset if expected == "NONE" else 1 - is_ongoing)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_marker_of_an_unknown_producer_is_appended(version: int) -> None:
    log = Log()
    assert log.end(7, is_commit=False, epoch=3, version=version) == "NONE"
    producer = log.partition.producer_states.producers[7]
    assert (producer.epoch, producer.txn_first_offset, producer.last_offset) == (3, None, 0)
    assert log.aborted == [], "the producer had no records here"


def test_marker_of_an_old_coordinator_is_fenced() -> None:
    log = Log()
    log.produce(7)
    assert log.end(7, is_commit=True, coordinator_epoch=4) == "NONE"
    log.produce(7)
    assert log.end(7, is_commit=False, coordinator_epoch=3) == "TRANSACTION_COORDINATOR_FENCED"
    assert log.stable == 2
    assert log.end(7, is_commit=False, coordinator_epoch=4) == "NONE"
    assert log.end(7, is_commit=True, epoch=-1, coordinator_epoch=3) == "INVALID_PRODUCER_EPOCH", (
        "the producer epoch is checked first"
    )


def test_sequences_go_on_after_a_marker_of_the_same_epoch() -> None:
    log = Log()
    log.produce(7, count=3)
    log.end(7, is_commit=True)
    log.sequences[7] = 0
    assert log.produce(7, count=3) == "NONE", "a repeated batch is known"
    assert log.partition.log.end_offset == 4, "it was not appended again"
    log.sequences[7] = 1
    assert log.produce(7) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.sequences[7] = 3
    assert log.produce(7) == "NONE"
    assert log.partition.log.end_offset == 5


def test_sequences_start_again_after_a_marker_with_a_bumped_epoch() -> None:
    log = Log()
    log.produce(7, count=3)
    assert log.end(7, is_commit=True, epoch=1, version=2) == "NONE"
    log.sequences[7] = 3
    assert log.produce(7, epoch=0) == "INVALID_PRODUCER_EPOCH", "a late batch of the transaction"
    assert log.produce(7, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.sequences[7] = 0
    assert log.produce(7, epoch=1) == "NONE"


def test_repeated_marker_ends_nothing() -> None:
    log = Log()
    log.produce(7)
    for _ in range(2):
        assert log.end(7, is_commit=False) == "NONE"
    assert log.aborted == [(7, 0, 1)]
    assert log.stable == log.partition.high_watermark == 3, "as in Kafka, it is appended again"


def test_aborted_transactions_overlap_the_offsets_of_a_read() -> None:
    log = Log()
    log.produce(7)  # 0
    log.produce(8, count=2)  # 1, 2
    log.produce(7)  # 3
    log.end(7, is_commit=False)  # 4
    log.end(8, is_commit=False)  # 5
    log.produce(7)  # 6
    log.end(7, is_commit=False)  # 7
    found = log.partition.producer_states.aborted_transactions
    first, second, third = (
        AbortedTxn(7, 0, 4, 1),
        AbortedTxn(8, 1, 5, 6),
        AbortedTxn(7, 6, 7, 8),
    )
    assert found(0, 8) == [first, second, third]
    assert found(0, 1) == [first]
    assert found(1, 2) == [first, second]
    assert found(4, 5) == [first, second]
    assert found(5, 6) == [second]
    assert found(6, 7) == [third]
    assert found(7, 8) == [third], "the marker belongs to the transaction"
    assert found(8, 9) == []
    log.partition.producer_states.remove_aborted_before(5)
    assert found(0, 8) == [second, third]


def test_last_stable_offset_is_at_least_the_log_start_offset() -> None:
    log = Log()
    log.produce(7, count=2)
    log.produce(9, is_transactional=False)
    log.partition.log.delete_before(2)
    assert log.stable == 2
    log.produce(7)
    log.end(7, is_commit=False)
    assert log.aborted == [(7, 0, 4)]


def test_producer_with_an_ongoing_transaction_does_not_expire() -> None:
    log = Log()
    log.produce(7)
    log.produce(8)
    log.end(8, is_commit=True)
    states = log.partition.producer_states
    states.expire(TIMESTAMP)
    assert list(states.producers) == [7]
    assert log.stable == 0
    log.end(7, is_commit=True)
    states.expire(TIMESTAMP)
    assert not states.producers


def test_truncation_opens_a_transaction_again() -> None:
    log = Log()
    log.produce(9, is_transactional=False)  # 0
    log.produce(7)  # 1
    log.produce(8)  # 2
    log.end(8, is_commit=False)  # 3
    log.end(7, is_commit=False)  # 4
    log.produce(7)  # 5
    assert log.stable == 5
    assert log.partition.truncate(4) == 4
    assert log.stable == 1, "the abort marker of producer 7 is lost"
    assert log.aborted == [(8, 2, 3)]
    assert log.partition.truncate(3) == 3
    assert (log.stable, log.aborted) == (1, [])
    assert log.partition.truncate(1) == 1
    assert log.stable == 1
    assert not log.partition.producer_states.has_ongoing_transaction(7, 0)
    log.sequences[7] = 0
    assert log.produce(7) == "NONE"
    assert log.stable == 1


def test_truncation_forgets_a_bumped_epoch() -> None:
    log = Log()
    log.produce(7)
    log.end(7, is_commit=True, epoch=1, version=2, coordinator_epoch=3)
    log.partition.truncate(1)
    producer = log.partition.producer_states.producers[7]
    assert (producer.epoch, producer.coordinator_epoch) == (0, -1)
    assert log.end(7, is_commit=True, epoch=1, version=2, coordinator_epoch=2) == "NONE"


def test_marker_names_producer_and_coordinator() -> None:
    log = Log()
    log.produce(7, epoch=2)
    log.partition.update_leader_and_isr(LeaderAndIsr.first((1,)))
    log.end(7, is_commit=False, epoch=2, coordinator_epoch=9)
    *_, batch = log.partition.log
    assert (batch.is_control, batch.is_transactional) == (True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, -1)
    assert (batch.partition_leader_epoch, batch.max_timestamp) == (1, TIMESTAMP)
    assert txn_marker_of(batch) == TxnMarker(7, 2, False, 9)


def test_other_control_batches_are_no_markers() -> None:
    control = ControlRecord(ControlRecordType.LEADER_CHANGE, LeaderChangeMessage(), 0)
    raw = encode_batch([(*encode_control_record(control), (), 0)], is_control=True)
    assert txn_marker_of(RecordBatch(raw)) is None


def test_marker_wakes_waiting_fetches_after_the_last_stable_offset_moved() -> None:
    log = Log()
    log.produce(7)
    seen: list[int] = []
    log.partition.log.watchers.add(lambda: seen.append(log.stable))
    log.produce(7)
    log.end(7, is_commit=True)
    assert seen == [0, 3]


# Sequences while the first batch of a transaction is verified (KIP-890)


@pytest.mark.parametrize(
    ("starts_at_zero", "sent", "sequence", "expected"),
    [
        (True, [0], 0, "NONE"),
        (True, [3], 3, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (True, [3, 0], 0, "NONE"),
        (False, [3], 3, "NONE"),
        (False, [3], 4, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (False, [3, 5], 5, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (False, [5, 3], 5, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (False, [5, 3], 3, "NONE"),
    ],
)
def test_earlier_batches_of_a_new_producer_are_appended_first(
    sent: list[int], sequence: int, expected: str, *, starts_at_zero: bool
) -> None:
    log = Log()
    for each in sent:
        log.partition.producer_states.start_verification(
            7, 0, each, TIMESTAMP, starts_at_zero=starts_at_zero
        )
    log.sequences[7] = sequence
    assert log.produce(7) == expected
    if expected == "NONE":
        assert log.produce(7, count=3) == "NONE", "the verification has ended"


def test_verification_of_a_newer_epoch_replaces_the_former() -> None:
    log = Log()
    states = log.partition.producer_states
    states.start_verification(7, 0, 2, TIMESTAMP, starts_at_zero=False)
    states.start_verification(7, 1, 4, TIMESTAMP, starts_at_zero=False)
    states.start_verification(7, 0, 0, TIMESTAMP, starts_at_zero=False)
    log.sequences[7] = 5
    assert log.produce(7, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    log.sequences[7] = 4
    assert log.produce(7, epoch=1) == "NONE"


@pytest.mark.parametrize(("age_ms", "expected"), [(0, "NONE"), (1, "OUT_OF_ORDER_SEQUENCE_NUMBER")])
def test_verification_expires_with_the_producer_id(age_ms: int, expected: str) -> None:
    log = Log()
    started = TIMESTAMP - CONFIG.producer_id_expiration_ms + age_ms
    log.partition.producer_states.start_verification(7, 0, 0, started, starts_at_zero=True)
    log.partition.producer_states.start_verification(7, 0, 0, TIMESTAMP, starts_at_zero=True)
    log.sequences[7] = 3
    assert log.produce(7) == expected


def test_verification_does_not_concern_other_producers() -> None:
    log = Log()
    log.partition.producer_states.start_verification(7, 0, 0, TIMESTAMP, starts_at_zero=True)
    log.sequences[8] = 3
    assert log.produce(8) == "NONE"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("truncate"), st.integers(0, 30), st.just(False)),
    ),
    max_size=40,
)


@given(STEPS)
def test_state_is_that_of_the_batches_in_the_log(steps: list[tuple[str, int, bool]]) -> None:
    """After each step, compares the state with a state that is computed from the whole log."""
    log = Log()
    for kind, number, flag in steps:
        if kind == "produce":
            log.produce(number, is_transactional=flag, count=number)
        elif kind == "end":
            log.end(number, is_commit=flag)
        elif number < log.partition.log.end_offset:
            log.partition.truncate(number)
            log.sequences = {
                producer_id: producer.next_sequence
                for producer_id, producer in log.partition.producer_states.producers.items()
            }
        open_since: dict[int, int] = {}
        aborted = []
        for batch in log.partition.log:
            marker = txn_marker_of(batch) if batch.is_control else None
            if marker is None and batch.is_transactional:
                open_since.setdefault(batch.producer_id, batch.base_offset)
            elif marker is not None:
                first = open_since.pop(marker.producer_id, None)
                if first is not None and not marker.is_commit:
                    aborted.append((marker.producer_id, first, batch.base_offset))
        assert log.aborted == aborted
        assert log.stable == min(open_since.values(), default=log.partition.high_watermark)
