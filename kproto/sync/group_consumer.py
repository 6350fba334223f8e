"""`GroupConsumer` without `await`.

`python -m tools.sync` writes this module from `kproto/client/consumer/group_consumer.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from ..client.commits.offset_requests import CommittedOffset
from ..client.consumer.group_consumer import GroupConsumer as _GroupConsumer
from ..client.consumer.user_offsets import ReturnedRecords
from ..client.groups.subscription import TopicPattern
from ..client.metadata.cluster import TopicPartition
from ..client.processing.handlers import BatchFailures
from ..client.processing.run_summary import RunSummary
from ..client.processing.settings import RunArguments, TransactionalRunArguments
from ..records import Record
from ..records.type_variables import K, U, V
from .handler_transaction import HandlerTransaction
from .record_stream import RecordStream
from .running import run_until_stopped
from .threaded_functions import threaded_handler

__all__ = ["GroupConsumer"]

D = TypeVar("D")


class GroupConsumer(RecordStream[_GroupConsumer[K, V, U], K, V, U]):
    """Yields the records of its assigned partitions; `Client.consumer` creates it.

    Iterations work as the iterations of `Consumer`, and have no end. Use the consumer with `with`:
    the end of the block waits until the consumer is closed (see `close`). Without `with`, the first
    poll joins the group, and `close`, or `close` of the iteration, closes the consumer. If the
    iteration is garbage-collected, the consumer is closed in the background.

    A record, a list, a batch or the records of a `poll` count as processed when the caller polls
    again, or when the block ends without an exception. `auto_commit`, or a call of `commit`,
    commits processed offsets.

    The consumer calls `on_assigned`, `on_revoked` and `on_lost` when its assignment changes. Polls
    raise the exceptions of these callbacks, the errors of `Consumer`, and errors of the member.
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

    def close(self, leave: bool | None = None, *, timeout_ms: int | None = None) -> None:
        """Revokes all partitions, and ends the membership in the group.

        With `auto_commit` it commits processed offsets first; a record that a handler still
        processes does not count as processed. `leave` overrides the setting `leave`: by default a
        dynamic member leaves, so that the group rebalances at once, and a static member stays, so
        that it can rejoin within its session. The commit and the request to leave have
        `timeout_ms`, at most `api_timeout_ms`, which is the default; without an answer in this time
        the close continues. Callbacks and handlers of `run` have limits of their own. If another
        thread closes the consumer, the call waits for that close. Raises an error, such as the
        error of a callback, if no poll has raised it yet.

        If Ctrl-C interrupts `close`, the event loop's thread still commits and leaves, while the
        call raises KeyboardInterrupt. After the interruption, callbacks and the handlers of `run`
        have the sum of `cancelled_close_ms` and `error_flush_ms`; their threads are then left to
        themselves. After that, the commit and the request to leave have `error_flush_ms`. If this
        time is too short, the next call of `close`, or the close of the client, completes the close
        with the same limits; that call raises RequestTimeoutError if the time is too short again.
        """
        self._end(lambda: self._wrapped.close(leave, timeout_ms=timeout_ms))

    def subscribe(self, topics: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> None:
        """Replaces the subscription. If the new subscription differs, the group rebalances.

        A pattern matches whole names. Raises ConfigurationError for an invalid topic, if partitions
        are assigned manually, and once the consumer is closed. During `run`, also raises
        ConfigurationError if the subscription matches the dead letter topic, or if a compiled
        pattern does not match all retry topics.
        """
        self._call_plain(self._wrapped.subscribe, topics)

    def unsubscribe(self) -> None:
        """Ends the subscription: the member revokes all partitions in the background.

        A dynamic member also leaves the group; the member joins again after `subscribe`.
        """
        self._call_plain(self._wrapped.unsubscribe)

    def enforce_rebalance(self, reason: str = "") -> None:
        """Requests a rebalance of a classic group; brokers log the `reason` (KIP-800).

        The call has no effect in the consumer protocol, because the coordinator assigns the
        partitions. Raises ConfigurationError for manually assigned partitions, and once the
        consumer is closed.
        """
        self._call_plain(self._wrapped.enforce_rebalance, reason)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._read(lambda: self._wrapped.assignment)

    def position(self, partition: TopicPartition) -> int:
        """Returns the position of a partition, the offset of its next record.

        Looks the position up if it is unknown. Raises ConfigurationError if the partition is not
        assigned, or if its topic was recreated and the group has not assigned the new topic yet.
        Raises NoCommittedOffsetError if `start` is "none" and the group has no committed offset.
        Raises BrokerResponseError for errors of a broker.
        """
        return self._call(self._wrapped.position, partition)

    def seek(self, partition: TopicPartition, where: int | Literal["earliest", "latest"]) -> None:
        """Sets the position of a partition to an offset, or to the start or the end of its log.

        Buffered records of the partition are dropped. Raises ConfigurationError for a partition
        that is not assigned, and for an invalid offset.
        """
        self._call_plain(self._wrapped.seek, partition, where)

    def pause(self, *partitions: TopicPartition) -> None:
        """Stops fetching and returning records of `partitions`, which stay assigned.

        `resume` ends the pause. A revocation also ends the pause of a partition: `on_assigned` can
        pause the partition again. Raises ConfigurationError for a partition that is not assigned.
        """
        self._call_plain(self._wrapped.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Ends the pause of `partitions`: the consumer fetches and returns their next records.

        Raises ConfigurationError for a partition that is not assigned.
        """
        self._call_plain(self._wrapped.resume, *partitions)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._read(lambda: self._wrapped.paused)

    def lag(self) -> dict[TopicPartition, int]:
        """Returns, for each assigned partition, the number of offsets from the position to the end.

        The end is the present high watermark, or with `read_committed` the last stable offset.
        Partitions that no longer exist or have no position are left out. Raises the errors of
        `position`.
        """
        return self._call(self._wrapped.lag)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """Returns, for each partition, the first offset with a timestamp at or after its time.

        The offset is None if there is no such record. Times are in ms since 1970. Raises
        ConfigurationError for an invalid time, and BrokerResponseError.
        """
        return self._call(self._wrapped.offsets_for_times, times)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int] | ReturnedRecords | None = None,
        metadata: str = "",
    ) -> None:
        """Commits the offsets of all processed records, or the given `offsets`.

        `offsets` maps partitions to the offset of the next record to be read. Instead, it may be a
        record, list or batch that an iteration returned, or the result of `poll`. The records that
        the last poll returned do not count as processed: `commit` commits their offsets only if the
        caller passes these records. `metadata` is stored with each offset. A commit waits for
        earlier commits, and is retried for `api_timeout_ms` after retriable errors. Raises
        CommitFailedError if this member may not commit the partitions now, BrokerResponseError if
        the broker refuses the commit, RequestTimeoutError, and ConfigurationError for invalid
        offsets.
        """
        self._call(self._wrapped.commit, offsets, metadata)

    def seek_to_committed(self) -> None:
        """Moves the positions of all assigned partitions back to the committed offsets.

        Call it after the abort of a transaction, so that the consumer returns the records of the
        transaction again. Waits while an open transaction has pending offsets of the partitions
        (KIP-447). A partition without a committed offset moves to its start offset. Buffered
        records are dropped. Raises BrokerResponseError and other errors of the requests, and moves
        no position after such an error. Raises ConfigurationError during `run`, and once the
        consumer is closed.
        """
        self._call(self._wrapped.seek_to_committed)

    def committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Returns the committed offsets of `partitions`, by default of the assigned partitions.

        An offset is None if the group has committed no offset of the partition. An offset that was
        committed for a deleted topic of the same name does not count. Raises BrokerResponseError.
        """
        return self._call(self._wrapped.committed, *partitions)

    @overload
    def run(
        self,
        handler: Callable[[Record[K, V]], object],
        *,
        decode: None = None,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    def run(
        self,
        handler: Callable[[D], object],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    def run(
        self,
        handler: Callable[[Record[K, V], HandlerTransaction], object],
        *,
        decode: None = None,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    @overload
    def run(
        self,
        handler: Callable[[D, HandlerTransaction], object],
        *,
        decode: Callable[[Record[K, V]], D],
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    def run(
        self,
        handler: Callable[..., object],
        *,
        decode: Callable[[Record[K, V]], Any] | None = None,
        transactional_id: str | None = None,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary:
        """Calls `handler` with each record, up to `workers` at once, until `run` is stopped.

        Each call of `handler`, with that of `decode`, has a thread. With order "partition" one
        record of a partition is handled at a time, with "key" one record of each key in a
        partition, and with "none" any number of records. `decode` returns the handler's argument
        for a record. With `auto_commit`, at most `commit_interval_ms` after a record is processed,
        `run` requests a commit of the offset of the first incomplete record. The metadata of the
        commit lists later processed offsets, which this client then skips. A record is handled only
        if its offset is less than `max_offset_gap` after the first incomplete offset. A failed
        record is retried as `retries` says: the default is 3 times, or 0 times with `retry_topics`.
        Then it is sent to the next of `retry_topics`, and finally to `dead_letter_topic`, with
        failure headers (`kproto.failure_of`); without a dead letter topic `run` raises the error.
        If `decode` or a codec of the consumer raises, the record is a dead letter at once.

        `run` stops if a handler raises `Stop`, at a signal of `stop_on` (by default SIGTERM, if it
        has no other handler), if Ctrl-C interrupts the call, or if the consumer is closed. At the
        end `run` waits for the handlers that still run, up to `drain_timeout_ms`, then no longer
        waits for them: their next calls of the client raise CancelledError, and with `auto_commit`
        commits processed offsets. With `cancel_lost`, `run` does not wait for handlers of lost
        partitions, and their next calls of the client raise CancelledError. See
        docs/how-to/handling.md. Raises ConfigurationError, e.g. for a retry topic that does not
        exist, and errors of handlers and of polls.
        """
        wrap = None if transactional_id is None else HandlerTransaction
        called = threaded_handler(handler, decode, wrap)
        wrapped = self._wrapped
        arguments: dict[str, Any] = {**settings}
        return run_until_stopped(
            self._binding.thread(), wrapped, wrapped.run, called, transactional_id, arguments
        )

    @overload
    def run_batches(
        self,
        handler: Callable[[list[Record[K, V]]], BatchFailures],
        *,
        batch_size: int = 500,
        transactional_id: None = None,
        **settings: Unpack[RunArguments],
    ) -> RunSummary: ...

    @overload
    def run_batches(
        self,
        handler: Callable[[list[Record[K, V]], HandlerTransaction], BatchFailures],
        *,
        batch_size: int = 500,
        transactional_id: str,
        **settings: Unpack[TransactionalRunArguments],
    ) -> RunSummary: ...

    def run_batches(
        self,
        handler: Callable[..., BatchFailures],
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
        wrap = None if transactional_id is None else HandlerTransaction
        called = threaded_handler(handler, None, wrap)
        wrapped = self._wrapped
        arguments: dict[str, Any] = {**settings, "batch_size": batch_size}
        return run_until_stopped(
            self._binding.thread(),
            wrapped,
            wrapped.run_batches,
            called,
            transactional_id,
            arguments,
        )
