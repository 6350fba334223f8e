"""`RunProducer`: the producer of `run` with a transactional id, as its `TransactionalProducer`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ...wire.errors import BrokerResponseError, KprotoError
from ..commits.transactional_commit import TransactionalCommit
from ..producer_record import ProducerRecord
from .batch import Ack, Delivery
from .errors import DeliveryError, TransactionAbortedError
from .producer import Producer
from .transactions.transaction import Transaction

__all__ = ["RunProducer"]

#: The errors of a broker that refuses a record because of the record or its topic. After other
#: errors, such as a wrong sequence, the same record may be stored in the next transaction.
_REFUSALS: Final = frozenset(
    {
        "CORRUPT_MESSAGE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "INVALID_TOPIC_EXCEPTION",
        "MESSAGE_TOO_LARGE",
        "POLICY_VIOLATION",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    }
)


class RunProducer:
    """Has one transaction at a time, from `begin` to `commit` or `abort`."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._transaction: Transaction | None = None

    async def start(self) -> None:
        """Requests a producer id, and so fences other producers with the transactional id."""
        await self._producer.__aenter__()

    async def begin(self) -> None:
        """Begins a transaction."""
        transaction = self._producer.transaction()
        await transaction.__aenter__()
        self._transaction = transaction

    async def ensure_topic(self, topic: str) -> None:
        """Waits for the metadata of a topic; raises the error of a topic that does not exist."""
        await self._producer._appender.ensure_metadata(topic)

    async def append(
        self, topic: str, record: ProducerRecord, on_failed: Callable[[KprotoError, bool], object]
    ) -> Awaitable[Ack]:
        """Appends a record; if the record fails, calls `on_failed(error, is_refusal(error))`."""
        delivery = await self._producer.enqueue(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.timestamp,
            partition=record.partition,
        )

        def on_done(done: Delivery) -> None:
            error = done.exception()
            if error is not None:
                # Of a refused batch, `invalid` has the refused records, if the broker names them.
                invalid = done._batch.invalid
                is_other = bool(invalid) and done.position not in invalid
                on_failed(error, not is_other and self.is_refusal(error))

        delivery.add_done_callback(on_done)
        return delivery

    def is_refusal(self, error: BaseException) -> bool:
        """Returns True if a broker has refused the record itself, and would refuse it again."""
        cause = error.cause if isinstance(error, DeliveryError) else error
        return isinstance(cause, BrokerResponseError) and cause.name in _REFUSALS

    async def commit(self, commit: TransactionalCommit) -> KprotoError | None:
        """Commits the transaction with offsets; returns None, or the error that has aborted it."""
        transaction = self._transaction
        assert transaction is not None, "it has begun"
        try:
            if commit.offsets:
                await transaction.commit_offsets(_Offsets(commit))
            await transaction.__aexit__(None, None, None)
        except TransactionAbortedError as error:
            await transaction.abort()
            return error
        finally:
            self._transaction = None
        return None

    async def abort(self) -> None:
        """Aborts the open transaction, if there is one."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            await transaction.abort()

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Aborts the open transaction, if there is one, and closes the producer."""
        await self._producer.close(timeout_ms=timeout_ms)


class _Offsets:
    """The source of the offsets of one transaction."""

    def __init__(self, commit: TransactionalCommit) -> None:
        self._commit = commit

    async def _transactional_commit(self) -> TransactionalCommit:
        return self._commit
