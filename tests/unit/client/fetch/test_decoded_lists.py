"""Tests that each record is returned once, decoded or as an error, for random takes of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto import UndecodableRecordError
from kproto.client.fetch.completed_fetch import CompletedFetch, UnreadBatch
from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.in_flight_records import InFlightRange
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.settings import ClientSettings
from kproto.codecs import DecodeContext
from kproto.codecs.record_decoder import RecordDecoder
from kproto.records import RecordBatch
from tests.support.examples import examples
from tests.unit.client.scripted_log import batch

pytestmark = pytest.mark.hypothesis

SETTINGS = ClientSettings()
BAD = b"x"

#: The batches of each partition: True is a record that can be decoded.
BATCHES = st.lists(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)
TAKES = st.lists(
    st.tuples(
        st.sampled_from(["record", "list", "polled", "raw list", "put back"]), st.integers(1, 5)
    ),
    max_size=30,
)


def number(data: bytes, context: DecodeContext) -> int:
    return int(data)


class Reader:
    """A buffer with fetches, and the offsets that were returned, by partition."""

    def __init__(self, partitions: list[list[list[bool]]]) -> None:
        self.buffer = FetchBuffer()
        self.decoder: RecordDecoder[bytes, int, Any] = RecordDecoder(None, number)
        self.wanted: dict[int, list[tuple[int, bool]]] = {}
        self.found: dict[int, list[tuple[int, bool]]] = {}
        self.states = []
        for at, batches in enumerate(partitions):
            state = TopicPartitionState(("t", at), SETTINGS, position=0)
            self.states.append(state)
            self.wanted[at] = []
            self.found[at] = []
            placed = []
            base = 0
            for good in batches:
                values = [b"%d" % (base + each) if ok else BAD for each, ok in enumerate(good)]
                placed.append(UnreadBatch(base, RecordBatch(batch(base, values))))
                self.wanted[at] += [(base + each, ok) for each, ok in enumerate(good)]
                base += len(good) + 1  # compaction has left a gap
            state.position = base
            self.buffer.add(
                CompletedFetch(
                    state,
                    placed,
                    size_in_bytes=0,
                    high_watermark=99,
                    max_decompressed_bytes=1_000_000,
                )
            )

    def note(self, at: int, records: list[Any]) -> None:
        for record in records:
            assert record.value == record.offset
            self.found[at].append((record.offset, True))

    def take(self, kind: str, most: int) -> bool:
        """Takes records; returns False if none is left."""
        takes: dict[str, Callable[[int], bool]] = {
            "record": self.take_record,
            "list": self.take_list,
            "polled": self.take_polled,
            "raw list": self.take_raw_list,
            "put back": self.put_back,
        }
        self.buffer.on_poll()
        try:
            return takes[kind](most)
        except UndecodableRecordError as error:
            self.note_error(error)
            return True

    def note_error(self, error: UndecodableRecordError) -> None:
        self.found[error.partition].append((error.record_offset, False))
        (in_flight,) = self.buffer.in_flight.values()
        assert in_flight.next_offset == error.record_offset + 1

    def take_record(self, most: int) -> bool:
        record = self.buffer.take_record()
        if record is None:
            return False
        self.note(record.partition, [self.decoder.decode(record)])
        return True

    def take_list(self, most: int) -> bool:
        fetched = self.buffer.take_decoded(self.decoder.decode_list)
        if fetched is None:
            return False
        self.note(fetched.partition, fetched.records)
        self.check_in_flight({fetched.partition: fetched.records})
        return True

    def take_polled(self, most: int) -> bool:
        polled = self.buffer.take_polled(most, self.decoder.decode_list)
        if polled is None:
            return False
        assert 0 < sum(map(len, polled.values())) <= most
        for (_, partition), records in polled.items():
            self.note(partition, records)
        self.check_in_flight({at: records for (_, at), records in polled.items()})
        return True

    def take_raw_list(self, most: int) -> bool:
        """Takes a list without codecs, as `run` does."""
        fetched = self.buffer.take_records()
        if fetched is None:
            return False
        for record in fetched.records:
            self.found[fetched.partition].append((record.offset, record.value != BAD))
        return True

    def put_back(self, most: int) -> bool:
        self.buffer.put_back_remaining()
        return True

    def check_in_flight(self, returned: dict[int, list[Any]]) -> None:
        in_flight = self.buffer.in_flight
        assert {state.tp[1] for state in in_flight} == returned.keys()
        for state, each in in_flight.items():
            assert isinstance(each, InFlightRange)
            assert each.offset <= returned[state.tp[1]][0].offset
            assert each.next_offset == returned[state.tp[1]][-1].offset + 1


@settings(max_examples=examples(200))
@given(BATCHES, TAKES)
def test_each_record_is_returned_once_and_in_order(
    partitions: list[list[list[bool]]], takes: list[tuple[str, int]]
) -> None:
    reader = Reader(partitions)
    for kind, most in takes:
        reader.take(kind, most)
    while reader.take("list", 1):
        pass
    assert reader.found == reader.wanted
    assert reader.buffer.is_empty
