"""`ProcessingStream`: a record stream that also calls handlers with its records concurrently."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, Unpack, overload

from ...records import Record
from ...records.type_variables import K, U, V
from ...wire.checks import check_whole_number
from ..processing.handler_transaction import HandlerTransaction
from ..processing.handlers import (
    BatchFailures,
    BatchHandler,
    RecordHandler,
    record_handler,
    with_codecs,
)
from ..processing.run_summary import RunSummary
from ..processing.settings import (
    RunArguments,
    RunSettings,
    TransactionalRunArguments,
    run_settings,
)
from ..processing.transactional_handlers import TransactionalBatchHandler, TransactionalHandler
from .record_processing import RecordProcessing
from .record_stream import RecordStream

__all__ = ["ProcessingStream"]

D = TypeVar("D")


class ProcessingStream(RecordStream[K, V, U]):
    """Calls handlers with polled records, and tracks the processed offsets."""

    _processing: RecordProcessing  # set by the subclass

    @overload
    async def run(
        self,
        handler: Callable[[Record[K, V]], Awaitable[object]],
        *,
        decode: None = None,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D], Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[Record[K, V], HandlerTransaction], Awaitable[object]],
        *,
        decode: None = None,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    @overload
    async def run(
        self,
        handler: Callable[[D, HandlerTransaction], Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    async def run(
        self,
        handler: Callable[..., Awaitable[object]],
        *,
        decode: Callable[[Record[K, V]], Any] | None = None,
        transactional_id: str | None = None,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary:
        """Calls `handler` with each record, up to `workers` at once, until `run` is stopped.

        With order "partition" one record of a partition is handled at a time, with "key" one record
        of each key in a partition, and with "none" any number of records. `decode` returns the
        handler's argument for a record. With `auto_commit`, at most `commit_interval_ms` after a
        record is processed, `run` requests a commit of the offset of the first incomplete record.
        The metadata of the commit lists later processed offsets, which this client then skips. A
        record is handled only if its offset is less than `max_offset_gap` after the first
        incomplete offset. A failed record is retried as `retries` says: the default is 3 times, or
        0 times with `retry_topics`. Then it is sent to the next of `retry_topics`, and finally to
        `dead_letter_topic`, with failure headers (`kproto.failure_of`); without a dead letter topic
        `run` raises the error. If `decode` or a codec of the consumer raises, the record is a dead
        letter at once.

        `run` stops if a handler raises `Stop`, at a signal of `stop_on` (by default SIGTERM, if it
        has no other handler), if `run` is cancelled, or if the consumer is closed. At the end `run`
        waits for the handlers that still run, up to `drain_timeout_ms`, then cancels these
        handlers, and with `auto_commit` commits processed offsets. With `cancel_lost`, `run`
        cancels handlers of lost partitions at once. See docs/how-to/handling.md. Raises
        ConfigurationError, e.g. for a retry topic that does not exist, and errors of handlers and
        of polls.
        """
        self._view.loop_guard.check()
        checked = run_settings(transactional_id, settings)
        if transactional_id is not None:
            return await self._run(
                TransactionalHandler(handler, with_codecs(self._decoder, decode)), checked
            )
        return await self._run(record_handler(handler, with_codecs(self._decoder, decode)), checked)

    @overload
    async def run_batches(
        self,
        handler: Callable[[list[Record[K, V]]], Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    async def run_batches(
        self,
        handler: Callable[[list[Record[K, V]], HandlerTransaction], Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    async def run_batches(
        self,
        handler: Callable[..., Awaitable[BatchFailures]],
        *,
        batch_size: int = 500,
        transactional_id: str | None = None,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary:
        """Calls `handler` with batches of up to `batch_size` records; otherwise works as `run`.

        `settings` are the other arguments of `run`, except `decode`, with the same defaults.

        A batch has records of one partition that are ready, in the order of their offsets;
        `run_batches` never waits for more records to fill a batch. With order "partition" one batch
        of a partition is handled at a time, with "key" a batch has one record of each key, and with
        "none" several batches of a partition may be handled at a time. `handler` returns None if
        all records are processed, or a dict from the index of each failed record in the batch to
        its exception; if it raises, all records of the batch have failed. Failed records are
        retried or sent to `retry_topics` and `dead_letter_topic` one by one as in `run`, and the
        other records of the batch count as processed. With order "partition" the next batch starts
        after the retries, and a retry has failed records only. If `handler` raises
        `Stop(done=True)`, all records of its batch are processed.

        Raises the errors of `run`, and ConfigurationError if `handler` returns something else.
        """
        self._view.loop_guard.check()
        check_whole_number("batch_size", batch_size, 1)
        checked = run_settings(transactional_id, settings)
        if transactional_id is not None:
            return await self._run(
                TransactionalBatchHandler(handler, batch_size, with_codecs(self._decoder, None)),
                checked,
            )
        return await self._run(
            BatchHandler(handler, batch_size, with_codecs(self._decoder, None)), checked
        )

    def _on_stop_signal(self) -> None:
        """Stops `run`, as a signal of `stop_on` does; the blocking client handles the signals."""
        if self._processing.pool is not None:
            self._processing.pool.on_signal()

    async def _run(
        self, handle: RecordHandler | BatchHandler | TransactionalHandler, settings: RunSettings
    ) -> RunSummary:
        """Runs `handle` on polled records."""
        self._check_may_run(settings)
        return await self._processing.run(handle, settings)

    @abstractmethod
    def _check_may_run(self, settings: RunSettings) -> None:
        """Raises ConfigurationError if `run` is not possible now, or with these topics."""
