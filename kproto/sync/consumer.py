"""`Consumer` without `await`.

`python -m tools.sync` writes this module from `kproto/client/consumer/consumer.py`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ..client.consumer.consumer import Consumer as _Consumer
from ..records.type_variables import K, U, V
from .record_stream import RecordStream

__all__ = ["Consumer"]


class Consumer(RecordStream[_Consumer[K, V, U], K, V, U]):
    """Yields the records of partitions; `Client.consumer` creates it.

    `for record in consumer` yields single records. `for fetched in consumer.record_lists()` yields
    `FetchedRecords`, which is faster; `values` and `raw_batches` decode less, and are faster still.
    Iterations are endless; with `stop_at_end` they end at the log ends that the consumer finds when
    it looks up its start positions. After a `break`, another iteration of any kind continues after
    the last returned item. A call that Ctrl-C interrupts loses no record and does not end the
    iteration. `poll` returns records by partition within a timeout.

    After a lost connection or a retriable error code, requests are retried for `api_timeout_ms`;
    then the last error is raised. Raises BrokerResponseError for other error codes. For bytes that
    are no records, returns the records before the bytes, and then raises CorruptBatchError. Raises
    UnreadableRecordError once for an unreadable record; the next call continues after the record.
    With codecs, raises UndecodableRecordError in the same way. In annotations, `Consumer` yields
    records of bytes, and `Consumer[str, Order]` records with decoded keys and values.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        self._call(self._wrapped.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(lambda: self._wrapped.__aexit__(kind, error, traceback))

    def close(self) -> None:
        """Ends every iteration, cancels the fetches in flight and closes their connections.

        If Ctrl-C interrupts the call, the event loop's thread completes these steps, while the call
        raises KeyboardInterrupt.
        """
        self._end(lambda: self._wrapped.close())

    @property
    def at_end(self) -> bool:
        """True if `stop_at_end` is set, and all records before the ends were returned."""
        return self._read(lambda: self._wrapped.at_end)
