"""`RecordStream` without `await`.

`python -m tools.sync` writes this module from `kproto/client/consumer/record_stream.py`.
"""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Generic

from ..client.metadata.cluster import TopicPartition
from ..records import Record
from ..records.type_variables import K, U, V
from .iterations import (
    RawBatchIteration,
    RecordIteration,
    RecordListIteration,
    ValueIteration,
    record_iteration,
)
from .stream_wrapper import S, StreamWrapper

__all__ = ["RecordStream"]


class RecordStream(StreamWrapper[S], Generic[S, K, V, U]):
    """Polls records of the partitions in `subscriptions`, over its own connections.

    `owner` identifies these connections in the connection pool. `decoder` decodes keys and values;
    if it is None, they stay bytes. The subclasses `Consumer` and `GroupConsumer` implement how a
    consumer starts and ends.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The position of each partition: the offset of the next record to return.

        The dict is empty until the consumer has started.
        """
        return self._read(lambda: self._wrapped.positions)

    def close(self) -> None:
        """Closes the consumer."""
        self._end(lambda: self._wrapped.close())

    def __iter__(self) -> RecordIteration[K, V, U]:
        return record_iteration(self, self._wrapped.__aiter__())

    def record_lists(self) -> RecordListIteration[K, V, U]:
        """Iterates over `FetchedRecords`: each has a list of records of one partition.

        A list has the records of one batch, of a part of a large batch, or of several small
        batches. With codecs, a list ends before an undecodable record, and the next call raises the
        error.
        """
        return RecordListIteration(self, self._wrapped.record_lists())

    def values(self) -> ValueIteration[V, U]:
        """Iterates over `FetchedValues`: each has a list of values of one partition, without keys.

        Records are validated as by `record_lists`. The values have no offsets. An offset cannot be
        computed by counting back from `next_offset`, because compaction and transactions leave
        gaps. With codecs, the keys are decoded, too, because an undecodable key makes a record
        undecodable.
        """
        return ValueIteration(self, self._wrapped.values())

    def raw_batches(self) -> RawBatchIteration:
        """Iterates over `FetchedBatch`: batches as brokers store them, to be forwarded or decoded.

        The checksums of the batches are verified; the batches are neither decompressed nor decoded.
        Control batches and, with `read_committed`, batches of aborted transactions are left out.
        Batches are returned whole. So the first batch may have records before the start offset, and
        with `stop_at_end` the last batch may have records after the end. If another iteration has
        returned some records of a batch, `raw_batches` returns them again with the batch. Codecs
        are not applied.
        """
        return RawBatchIteration(self, self._wrapped.raw_batches())

    def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record[K, V] | U]]:
        """Returns buffered records by partition; waits up to `timeout_ms` for the first record.

        Like `KafkaConsumer.poll` of Java's client, returns as soon as records are buffered, and
        returns at most `max_records`, by default `max_poll_records`. The dict is empty if no record
        arrives within `timeout_ms`, if the consumer is closed during the call, and at the end with
        `stop_at_end`. If `timeout_ms` is 0, starts the fetches that are due, and returns the
        buffered records. As in an iteration, records count as processed when the caller polls
        again; a call that returns no record is also a poll. A call that Ctrl-C interrupts loses no
        record.

        Outside `with`, the first poll of a group consumer looks up manually assigned partitions;
        this look-up may take longer than `timeout_ms`. Raises the errors of an iteration, and
        ConfigurationError for an invalid argument. An error of one partition loses no record of
        another partition.
        """
        return self._poll_call(self._wrapped.poll, timeout_ms, max_records)
