"""`ShareConsumer` without `await`.

`python -m tools.sync` writes this module from `kproto/client/consumer/share_consumer.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from ..client.consumer.share_consumer import RecordOrRecords
from ..client.fetch.share.acquisition import ShareRecord
from ..client.fetch.share.requests import AcknowledgeResult
from ..client.metadata.cluster import TopicPartition
from ..client.processing.run_summary import ShareRunSummary
from ..client.processing.settings import ShareRunArguments
from ..records.type_variables import K, U, V
from .iterations import ShareIteration, ShareListIteration, share_iteration
from .running import run_share_until_stopped
from .share_wrapper import ShareWrapper
from .threaded_functions import threaded_handler

__all__ = ["ShareConsumer"]

D = TypeVar("D")


class ShareConsumer(ShareWrapper[K, V, U]):
    """Yields records that its share group has acquired for it; `Client.share_consumer` creates it.

    Members of a share group share partitions: a record goes to one member at a time, which has a
    lock on it until it acknowledges the record, or until the lock ends
    (group.share.record.lock.duration.ms). Use the consumer with `with`: the end of the block sends
    the acknowledgements, releases all other records, and leaves the group.

    With implicit acknowledgement, asking for the next record, list or `poll` accepts the records
    returned before; so does the end of the block without an exception. With explicit
    acknowledgement the program calls `accept`, `release` or `reject` for each record, in any order;
    `renew` starts the lock of a record again. A record that is not acknowledged is delivered again,
    after its lock has ended or after the close.

    `ShareConsumer[str, Order]` has codecs: `decoder` decodes keys and values. After an
    UndecodableRecordError the consumer continues with the next record; the next poll, or the end of
    the block without an exception, rejects the undecodable record, in both modes.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # `typing.Generic` knows no defaults of type variables before Python 3.13
        __class_getitem__ = classmethod(GenericAlias)

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

    def close(self, *, timeout_ms: int | None = None) -> None:
        """Sends the acknowledgements, releases all other records, and leaves the group.

        Waits for the response to a fetch in flight, so the call takes up to `max_wait_ms`. The
        requests of the close have `timeout_ms`, at most `api_timeout_ms`, which is the default. If
        Ctrl-C interrupts `close`, the event loop's thread still does so, within `error_flush_ms`
        and `cancelled_close_ms`, while the call raises KeyboardInterrupt. If another thread closes
        the consumer, the call waits for that close. With implicit acknowledgement, the records
        before the last returned one count as processed.
        """
        self._end(lambda: self._wrapped.close(timeout_ms=timeout_ms))

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that the group has assigned to this member, perhaps to others, too."""
        return self._read(lambda: self._wrapped.partitions)

    @property
    def lock_timeout_ms(self) -> int | None:
        """The duration of acquisition locks in ms; None before the first response to a fetch."""
        return self._read(lambda: self._wrapped.lock_timeout_ms)

    def subscribe(self, topics: str | Iterable[str]) -> None:
        """Replaces the subscription.

        Releases the fetched records of former topics that were not returned: the group delivers
        them again. Returned records can still be acknowledged. Raises ConfigurationError for
        invalid topics, and if the consumer is closed.
        """
        self._call_plain(self._wrapped.subscribe, topics)

    def __iter__(self) -> ShareIteration[K, V, U]:
        return share_iteration(self, self._wrapped.__aiter__())

    def record_lists(self) -> ShareListIteration[K, V, U]:
        """Iterates over lists of records: each has acquired records of one partition.

        With codecs, a list ends before an undecodable record, and the next call raises the error.
        """
        return ShareListIteration(self, self._wrapped.record_lists())

    def poll(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[ShareRecord[K, V] | U]]:
        """Returns acquired records by partition; waits up to `timeout_ms` for the first record.

        Returns at most `max_records`, by default `max_poll_records`. The dict is empty if no record
        arrives in time, or if the consumer is closed during the call. With implicit acknowledgement
        the call accepts the records of the previous call. A call that Ctrl-C interrupts loses no
        record. Raises the errors of an iteration, and ConfigurationError for an invalid argument.
        """
        return self._poll_call(self._wrapped.poll, timeout_ms, max_records)

    def accept(self, records: RecordOrRecords) -> None:
        """Accepts a record, or several: they are processed, and are never delivered again.

        The acknowledgement is sent with the next fetch, or after 50 ms; `commit` waits for its
        result, and `on_acknowledged` gets the result. Raises LockLostError if the lock of a record
        has ended, and ConfigurationError for a record of another consumer, for a record that is
        acknowledged already, with implicit acknowledgement, and after the close. Records before the
        one with the error stay acknowledged.
        """
        self._call(self._wrapped.accept, records)

    def release(self, records: RecordOrRecords) -> None:
        """Releases a record, or several: the group delivers them again, to any member.

        After the number of deliveries in `group.share.delivery.count.limit` of the broker, 5 by
        default, the broker archives the record instead. Raises the errors of `accept`.
        """
        self._call(self._wrapped.release, records)

    def reject(self, records: RecordOrRecords) -> None:
        """Rejects a record, or several: they cannot be processed, and are never delivered again.

        Raises the errors of `accept`.
        """
        self._call(self._wrapped.reject, records)

    def renew(self, records: RecordOrRecords) -> None:
        """Starts the lock of a record, or of several, again (KIP-1222).

        Another acknowledgement must follow. Raises the errors of `accept`, and
        UnsupportedVersionError if the broker is older than Kafka 4.2.
        """
        self._call(self._wrapped.renew, records)

    def commit(self) -> list[AcknowledgeResult]:
        """Sends all acknowledgements, and waits for their results, by partition and request.

        With implicit acknowledgement, first accepts all returned records. Waits for
        `api_timeout_ms` at most. The errors of the broker are in the results: a record whose
        acknowledgement has failed is delivered again. Raises RequestTimeoutError, and
        ConfigurationError after the close.
        """
        return self._call(self._wrapped.commit)

    @overload
    def run(
        self,
        handler: Callable[[ShareRecord[K, V]], object],
        *,
        decode: None = None,
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary: ...

    @overload
    def run(
        self,
        handler: Callable[[D], object],
        *,
        decode: Callable[[ShareRecord[K, V]], D],
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary: ...

    def run(
        self,
        handler: Callable[..., object],
        *,
        decode: Callable[[Any], Any] | None = None,
        **settings: Unpack[ShareRunArguments],
    ) -> ShareRunSummary:
        """Calls `handler` with each record, up to `workers` at once, until `run` is stopped.

        Needs explicit acknowledgement. A record is accepted when its handler returns. If the
        handler raises, the record is released after the backoff of `retries`, as long as the number
        of its deliveries to all members is at most `retries.attempts`; then it is sent to
        `dead_letter_topic`, with failure headers (`kproto.failure_of`), or rejected without a dead
        letter topic. A failed record is not released after the last delivery that the config
        share.delivery.count.limit of the group allows at the start of `run`, if the principal may
        read it (DESCRIBE_CONFIGS on the group): the broker would archive the record. If `decode` or
        a codec of the consumer raises, the record is a dead letter, or rejected, at once. While a
        record waits or is processed, `run` renews its lock; it drops a waiting record whose lock
        has ended nevertheless.

        `run` stops if a handler raises `Stop`, at a signal of `stop_on` (by default SIGTERM, if it
        has no other handler), if Ctrl-C interrupts the call, or if the consumer is closed. Then it
        releases the records that have not started, waits up to `drain_timeout_ms` for the handlers
        that still run, then releases the records of the others and no longer waits for them: their
        next calls of the client raise CancelledError. Raises ConfigurationError for invalid
        arguments and for a dead letter topic that does not exist, and errors of polls.
        """
        called = threaded_handler(handler, decode, None)
        arguments: dict[str, Any] = {**settings}
        return run_share_until_stopped(self._binding.thread(), self._wrapped, called, arguments)
