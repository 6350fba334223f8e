"""`RunProducer`: the producer of `run` with a transactional id, as its `TransactionalProducer`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...wire.errors import KprotoError
from ..commits.transactional_commit import TransactionalCommit
from ..producer_record import ProducerRecord
from .batch import Ack, Delivery
from .errors import DeliveryError, TransactionAbortedError, TransactionError
from .producer import Producer
from .transactions.transaction import Transaction

__all__ = ["RunProducer"]


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

    async def append(
        self, topic: str, record: ProducerRecord, on_failed: Callable[[KprotoError], object]
    ) -> Awaitable[Ack]:
        """Appends a record; calls `on_failed` with its error if a broker refuses it."""
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
                on_failed(error)

        delivery.add_done_callback(on_done)
        return delivery

    def is_aborted(self, error: BaseException) -> bool:
        """Returns True if a record has failed with `error` only because the transaction has."""
        cause = error.cause if isinstance(error, DeliveryError) else error
        return isinstance(cause, TransactionError)

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
