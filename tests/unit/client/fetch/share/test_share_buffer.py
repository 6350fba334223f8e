"""Tests the buffer of a share consumer: decoding, implicit acceptance, drops."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator
from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.share.acquired_reader import CompletedShareFetch
from kproto.client.fetch.share.acquisition import (
    AcknowledgeType,
    Acquisition,
    OffsetState,
    ShareRecord,
)
from kproto.client.fetch.share.buffer import ShareBuffer, acquired_ranges
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.observing.counts import ShareCounts
from kproto.codecs import DecodeContext
from kproto.codecs.record_decoder import RecordDecoder
from kproto.messages.share_fetch_response import AcquiredRecords, PartitionData
from kproto.records import MAX_DECOMPRESSED_BYTES, encode_batch
from kproto.wire.errors import CorruptBatchError, ProtocolError, UndecodableRecordError
from kproto.wire.uuid import ZERO_UUID

OPEN = 255
ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
REJECT, RENEW = AcknowledgeType.REJECT, AcknowledgeType.RENEW
TP = ("t", 0)


class Buffer(ShareBuffer):
    """A buffer that stores the reported acquisitions."""

    def __init__(self, *, is_explicit: bool = False) -> None:
        self.reported: list[Acquisition] = []
        super().__init__(
            self.reported.extend, MAX_DECOMPRESSED_BYTES, ShareCounts(), is_explicit=is_explicit
        )

    def fetched(
        self,
        *ranges: tuple[int, int],
        batches: tuple[tuple[int, int], ...] = (),
        tp: TopicPartition = TP,
        node: int = 1,
        locked_until: float = 130.0,
        damage: bool = False,
    ) -> list[Acquisition]:
        """Adds a fetch that acquired `ranges`, of batches that begin and end as `batches`."""
        data = b"".join(
            encode_batch(
                [(None, b"%d" % at, (), at) for at in range(first, last + 1)], base_offset=first
            )
            for first, last in batches or ranges
        )
        if damage:
            data = data[:-1] + bytes([data[-1] ^ 1])
        acquisitions = [
            Acquisition(self, node, tp, ZERO_UUID, *its, count, locked_until)
            for count, its in enumerate(ranges, 1)
        ]
        self.add(CompletedShareFetch(tp, node, data, acquisitions))
        return acquisitions


def offsets(buffer: ShareBuffer, count: int) -> list[int]:
    found = [buffer.take_record() for _ in range(count)]
    return [record.offset for record in found if record is not None]


def test_records_carry_the_delivery_count_of_their_range() -> None:
    buffer = Buffer()
    buffer.fetched((0, 1), (2, 3), batches=((0, 3),))
    records = [buffer.take_record() for _ in range(4)]
    assert [(each.offset, each.delivery_count) for each in records if each is not None] == [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
    ]
    assert buffer.take_record() is None


def test_records_outside_of_the_acquired_ranges_are_not_returned() -> None:
    buffer = Buffer()
    buffer.fetched((3, 4), (8, 8), batches=((0, 5), (6, 9)))
    assert offsets(buffer, 10) == [3, 4, 8]


def test_offsets_without_records_are_acknowledged_as_gaps() -> None:
    buffer = Buffer(is_explicit=True)
    (its,) = buffer.fetched((0, 5), batches=((0, 1), (4, 4)))
    assert offsets(buffer, 10) == [0, 1, 4]
    assert list(its.states) == [OPEN, OPEN, 0, 0, OPEN, 0]
    assert {id(each) for each in buffer.reported} == {id(its)}


def test_next_poll_accepts_the_records_of_a_returned_list() -> None:
    buffer = Buffer()
    (its,) = buffer.fetched((0, 2))
    assert offsets(buffer, 3) == [0, 1, 2]
    assert list(its.states) == [OPEN] * 3
    buffer.on_poll()
    assert list(its.states) == [ACCEPT] * 3


def test_next_poll_returns_the_acceptances_of_ended_locks() -> None:
    buffer = Buffer()
    first, second = buffer.fetched((0, 2), (4, 5))
    assert offsets(buffer, 4) == [0, 1, 2, 4]
    assert buffer.accept_processed() == []  # 0 to 2
    first.lose(0, 2)
    second.lose(4, 5)
    (lost,) = buffer.on_poll()
    assert lost.acquisition is second
    assert list(lost.states) == [ACCEPT, OffsetState.LOST]  # 5 is not returned
    assert buffer.on_poll() == []


def test_next_poll_accepts_only_the_returned_part_of_a_list() -> None:
    buffer = Buffer()
    (its,) = buffer.fetched((0, 3))
    assert offsets(buffer, 2) == [0, 1]
    buffer.on_poll()
    assert list(its.states) == [ACCEPT, ACCEPT, OPEN, OPEN]
    assert offsets(buffer, 9) == [2, 3]
    buffer.on_poll()
    assert list(its.states) == [ACCEPT] * 4


def test_explicit_buffer_accepts_nothing_by_itself() -> None:
    buffer = Buffer(is_explicit=True)
    (its,) = buffer.fetched((0, 1))
    offsets(buffer, 2)
    buffer.on_poll()
    buffer.accept_processed()
    assert list(its.states) == [OPEN] * 2


def test_record_in_processing_is_not_accepted_in_the_meantime() -> None:
    buffer = Buffer()
    (its,) = buffer.fetched((0, 2))
    offsets(buffer, 2)
    buffer.accept_processed()
    assert list(its.states) == [ACCEPT, OPEN, OPEN]


def test_records_of_a_list_are_all_in_processing() -> None:
    buffer = Buffer()
    (its,) = buffer.fetched((0, 2))
    assert buffer.take_list() is not None
    buffer.accept_processed()
    assert list(its.states) == [OPEN] * 3


def test_poll_returns_records_of_several_partitions_up_to_the_limit() -> None:
    buffer = Buffer()
    (first,) = buffer.fetched((0, 2))
    (second,) = buffer.fetched((5, 7), tp=("t", 1))
    polled = buffer.take_polled(4)
    assert polled is not None
    assert {tp: [each.offset for each in its] for tp, its in polled.items()} == {
        ("t", 0): [0, 1, 2],
        ("t", 1): [5],
    }
    buffer.on_poll()
    assert list(first.states) == [ACCEPT] * 3
    assert list(second.states) == [ACCEPT, OPEN, OPEN]


def test_former_topic_releases_records_that_were_not_returned() -> None:
    buffer = Buffer()
    (current,) = buffer.fetched((0, 3))
    (waiting,) = buffer.fetched((4, 5))
    (other,) = buffer.fetched((0, 1), tp=("u", 1))
    assert offsets(buffer, 2) == [0, 1]
    buffer.release_other_topics(["u"])
    assert list(current.states) == [OPEN, OPEN, RELEASE, RELEASE]
    assert list(waiting.states) == [RELEASE] * 2
    assert list(other.states) == [OPEN] * 2
    buffer.on_poll()
    assert list(current.states) == [ACCEPT, ACCEPT, RELEASE, RELEASE]
    assert offsets(buffer, 9) == [0, 1]


def test_record_that_another_thread_takes_is_not_released() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            buffer = Buffer()
            (current,) = buffer.fetched((0, 299))
            taken = offsets(buffer, 1)
            remaining = buffer.remaining

            def take(remaining: Iterator[ShareRecord] = remaining, to: list[int] = taken) -> None:
                for record in remaining:
                    to.append(record.offset)  # noqa: PERF401 - record by record

            thread = threading.Thread(target=take)
            thread.start()
            while len(taken) < 2:
                pass
            buffer.release_other_topics([])
            thread.join()
            released = [at for at, state in enumerate(current.states) if state == RELEASE]
            assert taken + released == [*range(300)]
    finally:
        sys.setswitchinterval(interval)


def test_unlocked_records_are_never_returned_nor_accepted() -> None:
    buffer = Buffer()
    (current,) = buffer.fetched((0, 2), locked_until=110.0)
    (waiting,) = buffer.fetched((3, 4), locked_until=120.0)
    assert offsets(buffer, 1) == [0]
    assert buffer.unlocked_at == 110.0
    buffer.drop_unlocked(115.0)
    assert buffer.unlocked_at == 120.0
    buffer.on_poll()
    assert list(current.states) == [ACCEPT, OPEN, OPEN]
    assert offsets(buffer, 2) == [3, 4]
    assert list(waiting.states) == [OPEN] * 2


def test_records_of_a_lost_broker_or_a_former_leader_are_dropped() -> None:
    buffer = Buffer()
    buffer.fetched((0, 1), node=1)
    buffer.fetched((2, 3), node=2)
    buffer.fetched((9, 9), node=2, tp=("t", 1))
    buffer.drop_node(1)
    buffer.drop_moved({TP: 3, ("t", 1): 2})
    assert offsets(buffer, 9) == [9]


@pytest.mark.parametrize("ranges", [[(3, 2)], [(-5, 2)], [(0, 2), (2, 3)], [(0, 1 << 60)]])
def test_impossible_ranges_are_refused(ranges: list[tuple[int, int]]) -> None:
    acquired = [AcquiredRecords(first_offset=at, last_offset=to) for at, to in ranges]
    with pytest.raises(ProtocolError, match=r"t\[0\]"):
        acquired_ranges(PartitionData(acquired_records=acquired), TP)


def test_corrupt_batch_is_rejected_and_its_error_raised_once() -> None:
    buffer = Buffer(is_explicit=True)
    (its,) = buffer.fetched((0, 3), batches=((0, 1), (2, 3)), damage=True)
    assert offsets(buffer, 2) == [0, 1]
    with pytest.raises(CorruptBatchError) as raised:
        buffer.take_record()
    assert (raised.value.topic, raised.value.partition) == TP
    assert list(its.states) == [OPEN, OPEN, REJECT, REJECT]
    assert buffer.take_record() is None


@pytest.mark.parametrize("ranges", [((0, 3),), ((0, 0), (1, 3))])
def test_renewal_of_a_returned_record_keeps_no_record_that_was_not_returned(
    ranges: tuple[tuple[int, int], ...],
) -> None:
    """Before, a consumer that renewed each record returned the later ones without a lock."""
    buffer = Buffer(is_explicit=True)
    first, *_ = buffer.fetched(*ranges)
    assert offsets(buffer, 1) == [0]
    first.acknowledge(0, RENEW, 100.0)
    first.on_answered(first.take(), 160.0)
    assert buffer.unlocked_at == 130.0
    buffer.drop_unlocked(140.0)
    assert buffer.take_record() is None


class Decoder(RecordDecoder[bytes, bytes, Never]):
    """Decodes the records whose offsets are not in `bad`."""

    def __init__(self, bad: Collection[int]) -> None:
        self.bad = bad
        super().__init__(None, self.value_of)

    def value_of(self, data: bytes, context: DecodeContext) -> bytes:
        if context.record.offset in self.bad:
            raise ValueError
        return data


def read(buffer: ShareBuffer, decoder: Decoder, how: str) -> list[int]:
    """Reads as a consumer does; returns the offsets of the records, or of the raised error."""
    buffer.on_poll()
    try:
        if how == "poll":
            polled = buffer.take_polled(3, decoder.decode_list) or {}
            return [each.offset for its in polled.values() for each in its]
        if how == "list":
            taken = buffer.take_list(None, decoder.decode_list)
            return [] if taken is None else [each.offset for each in taken[1]]
        record = buffer.take_record()
        if record is None:
            return []
        try:
            return [decoder.decode(record).offset]
        except UndecodableRecordError:
            buffer.on_undecodable(record)
            raise
    except UndecodableRecordError as error:
        return [error.record_offset]


@given(
    bad=st.sets(st.integers(0, 11)),
    reads=st.lists(st.sampled_from(["poll", "list", "record"]), max_size=40),
    is_explicit=st.booleans(),
    accepts=st.booleans(),
)
def test_each_record_is_returned_or_raised_once_and_undecodable_ones_are_rejected(
    bad: set[int], reads: list[str], is_explicit: bool, accepts: bool
) -> None:
    buffer, decoder = Buffer(is_explicit=is_explicit), Decoder(bad)
    acquisitions = [*buffer.fetched((0, 3)), *buffer.fetched((4, 7), (8, 11))]
    found: list[int] = []
    for how in [*reads, *["record"] * 13]:
        got = read(buffer, decoder, how)
        found += got
        if accepts:
            buffer.accept_processed()
        states = [state for each in acquisitions for state in each.states]
        # The last records, or the error of the last one, are being processed.
        assert all(state == OPEN for state in states[len(found) - len(got) :])
    assert found == [*range(12)]
    good = OPEN if is_explicit else ACCEPT
    states = [state for each in acquisitions for state in each.states]
    assert states == [REJECT if at in bad else good for at in range(12)]


def test_undecodable_record_in_processing_is_not_rejected_in_the_meantime() -> None:
    buffer = Buffer()
    (its,) = buffer.fetched((0, 3))
    for _ in range(3):
        record = buffer.take_record()
        assert record is not None
        if record.offset > 0:
            buffer.on_undecodable(record)
    buffer.accept_processed()
    assert list(its.states) == [ACCEPT, REJECT, OPEN, OPEN]
    buffer.on_poll()
    assert list(its.states) == [ACCEPT, REJECT, REJECT, OPEN]
