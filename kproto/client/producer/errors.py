"""`DeliveryError`: records that were not acked, with the reason; and the errors of transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ...protocol.broker_errors import ProducerFencedError
from ...protocol.error_codes import code_of
from ...wire.counted import counted, were
from ...wire.errors import AuthenticationError, KprotoError
from ..producer_record import ProducerRecord

__all__ = [
    "DeliveryError",
    "FatalTransactionError",
    "FencedTransactionError",
    "TransactionAbortedError",
    "TransactionError",
]


class DeliveryError(KprotoError):
    """Some records were not acked: `records` has all unacked records except the `dropped` records.

    `by_topic` has the same records by topic; an error of `flush` or `close` may have several
    topics. Each record that was in a batch has the partition and the timestamp that the producer
    chose for it, so a program can send the record again unchanged. `topic`, `partition` (-1 if none
    was chosen) and `cause` are those of the first record. An error whose `cause` is an
    AuthenticationError is an AuthenticationError too.

    `unknown` has those of `records` that a broker may have stored, for example because the
    connection was lost before the response. Sending them again may store them twice; the other
    records were not stored.

    `dropped` has the number of dropped records by topic. The producer keeps failed records until a
    caller awaits their deliveries, or until `flush` or `close` reports them. If the kept records
    exceed `undelivered_bytes`, the producer drops the oldest records.
    """

    def __new__(
        cls,
        topic: str,
        partition: int,
        records: Sequence[ProducerRecord],
        cause: KprotoError,
        by_topic: Mapping[str, Sequence[ProducerRecord]] | None = None,
        dropped: Mapping[str, int] | None = None,
        *,
        unknown: Sequence[ProducerRecord] = (),
    ) -> Self:
        """Returns the error; it is also an AuthenticationError if the cause is one."""
        made: type[DeliveryError] = cls
        if cls is DeliveryError and isinstance(cause, AuthenticationError):
            made = UnauthenticatedDeliveryError
        return super().__new__(made)  # type: ignore[return-value]  # it is a cls

    def __init__(
        self,
        topic: str,
        partition: int,
        records: Sequence[ProducerRecord],
        cause: KprotoError,
        by_topic: Mapping[str, Sequence[ProducerRecord]] | None = None,
        dropped: Mapping[str, int] | None = None,
        *,
        unknown: Sequence[ProducerRecord] = (),
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.records = list(records)
        self.unknown = list(unknown)
        self.cause = cause
        self.by_topic = {
            name: list(its)
            for name, its in ({topic: self.records} if by_topic is None else by_topic).items()
        }
        self.dropped = dict(dropped or {})
        if len(self.by_topic) > 1:
            target = ", ".join(sorted(self.by_topic))
        else:
            target = _target_of(topic, partition, self.records)
        number = len(self.records)
        what = f"{counted(number, 'record')} for {target} {were(number)} not acknowledged"
        text = f"{what if self.records else target}: {cause}"
        if self.dropped:
            text += (
                f"; besides, {sum(self.dropped.values())} failed records for "
                f"{', '.join(sorted(self.dropped))} were dropped, because no caller had awaited "
                "their deliveries (undelivered_bytes)"
            )
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles all arguments, because the text alone does not rebuild the exception."""
        first = (self.topic, self.partition, self.records, self.cause)
        arguments = (*first, self.by_topic, self.dropped)
        return DeliveryError, arguments, vars(self)

    @classmethod
    def joined(cls, failures: Iterable[DeliveryError]) -> DeliveryError | None:
        """Returns one error with the records of all `failures`; None if there is no failure."""
        each = list(failures)
        if not each:
            return None
        by_topic: dict[str, list[ProducerRecord]] = {}
        dropped: Counter[str] = Counter()
        for failure in each:
            for topic, records in failure.by_topic.items():
                by_topic.setdefault(topic, []).extend(records)
            dropped.update(failure.dropped)
        records = [record for failure in each for record in failure.records]
        first = each[0]
        unknown = [record for failure in each for record in failure.unknown]
        return cls(
            first.topic, first.partition, records, first.cause, by_topic, dropped, unknown=unknown
        )


def _target_of(topic: str, partition: int, records: Iterable[ProducerRecord]) -> str:
    """Returns what a text calls the target of the records: one or several partitions, or a topic.

    `partition` is that of the first record, -1 if none was chosen.
    """
    if partition < 0:
        return topic
    chosen = {record.partition for record in records}
    if not chosen - {None, partition}:
        return f"{topic}[{partition}]"
    return topic if None in chosen else f"{len(chosen)} partitions of {topic}"


class UnauthenticatedDeliveryError(DeliveryError, AuthenticationError):
    """Records that were not acked, because authentication between client and broker failed."""


class TransactionError(KprotoError):
    """A transaction of the producer with `transactional_id` has failed.

    `cause` is the error that made the transaction fail, None if there is none.
    """

    def __init__(
        self, reason: str, transactional_id: str, cause: KprotoError | None = None
    ) -> None:
        self.reason = reason
        self.transactional_id = transactional_id
        self.cause = cause
        text = f"transactional id {transactional_id!r}: {reason}"
        # Not by `super()`: a subclass also inherits BrokerResponseError.
        KprotoError.__init__(self, text if cause is None else f"{text}: {cause}")


class TransactionAbortedError(TransactionError):
    """The transaction is aborted, at the latest when its block ends; no record of it is committed.

    The offsets of the transaction are not committed, either. The producer can begin the next
    transaction.
    """


class FatalTransactionError(TransactionError):
    """The producer cannot send records any more: the transactional id needs a new producer.

    The new producer aborts a transaction that this producer has left open. Without a new producer
    the broker aborts this transaction after `transaction_timeout_ms`.
    """


class FencedTransactionError(FatalTransactionError, ProducerFencedError):
    """Another producer has the transactional id, or the broker has aborted the transaction.

    The broker aborts a transaction after `transaction_timeout_ms`.
    """

    def __init__(
        self, reason: str, transactional_id: str, cause: KprotoError | None = None
    ) -> None:
        FatalTransactionError.__init__(self, reason, transactional_id, cause)
        self.code = code_of("PRODUCER_FENCED")
        self.name = "PRODUCER_FENCED"
        self.detail = str(self.args[0])
        self.retriable = False
