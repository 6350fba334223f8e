"""`Transaction`: commits the records and offsets of a block together, or aborts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from ....wire.errors import ConfigurationError
from ...commits.offset_requests import CommittedOffset, checked_commits
from ...commits.transactional_commit import TransactionalCommit, TransactionalOffsetSource
from ...metadata.cluster import TopicPartition
from ..errors import FatalTransactionError, TransactionAbortedError
from .open_transaction import OpenTransaction
from .prepared_transaction import PreparedTransactionState

__all__ = ["Transaction", "TransactionOwner"]


class TransactionOwner(Protocol):
    """Begins and ends the transactions of a producer; `producer_transactions` implements it.

    `transaction` names the transaction: a producer has one transaction at a time.
    """

    @property
    def may_be_committed(self) -> bool:
        """True if the producer failed while it was unknown whether a transaction was committed."""
        ...

    async def begin(self, transaction: object) -> None:
        """Begins a transaction."""
        ...

    async def commit(self, transaction: object, on_committed: Callable[[], None]) -> None:
        """Commits the transaction if it is still open, and calls `on_committed`."""
        ...

    async def abort(self, transaction: object) -> None:
        """Aborts the transaction if it is still open."""
        ...

    async def abort_after(self, transaction: object, error: BaseException) -> None:
        """Aborts the transaction if it is still open, because `error` has ended its block."""
        ...

    async def prepare(self, transaction: object) -> PreparedTransactionState:
        """Flushes the transaction, and refuses further records."""
        ...

    async def leave_open(self, transaction: object) -> OpenTransaction:
        """Flushes the transaction, and leaves it open."""
        ...

    async def commit_offsets(
        self, transaction: object, commit: TransactionalCommit | TransactionalOffsetSource
    ) -> None:
        """Commits offsets with the transaction."""
        ...


class Transaction:
    """A transaction of a producer with a transactional id (KIP-98), to be used with `async with`.

    All records that the producer sends in the block belong to the transaction. The end of the block
    commits the transaction: it waits until all records are acked, and raises
    TransactionAbortedError, after an abort, if a record or a commit of offsets has failed. If the
    block raises an exception, or is cancelled, the transaction is aborted. If a cancellation, for
    example by a timeout, arrives during the commit, the transaction may be committed all the same:
    `is_committed` has the outcome. An ack of a record means that the record is written, not that it
    is committed: consumers with `read_committed` get the record once the transaction is committed.

    The begin and the end of the block raise FatalTransactionError if the producer cannot continue,
    and ProducerFencedError if another producer has taken over the transactional id. If no response
    to the commit arrives within its time limit, it is unknown whether the transaction is committed;
    the text of the FatalTransactionError says so.
    """

    def __init__(self, owner: TransactionOwner) -> None:
        self._owner = owner
        self._is_entered = False
        self._has_begun = False
        self._is_aborted = False  # by `abort`
        self._is_left_open = False
        self._is_committed: bool | None = False
        self._failure: FatalTransactionError | None = None  # of the commit

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ConfigurationError("the transaction has begun already; create another one")
        self._is_entered = True
        await self._owner.begin(self)
        self._has_begun = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and (self._is_aborted or self._is_left_open):
            return
        if error is None:
            try:
                await self._owner.commit(self, self._on_committed)
            except TransactionAbortedError:
                if not self._is_aborted:  # by another task, during the commit
                    raise
            except BaseException as failure:
                if not self._is_committed and self._owner.may_be_committed:
                    self._is_committed = None
                if isinstance(failure, FatalTransactionError):
                    self._failure = failure
                elif self._is_committed is None:
                    failure.add_note("it is unknown whether the transaction is committed")
                elif self._is_committed:
                    failure.add_note("the transaction is committed")
                raise
        else:
            await self._owner.abort_after(self, error)

    def _on_committed(self) -> None:
        self._is_committed = True

    @property
    def is_committed(self) -> bool | None:
        """True if the transaction is committed, False if not; None if that is unknown.

        Read it after a cancellation or a timeout that may have arrived during the end of the block.
        The outcome is unknown if no response to the commit arrived in time, and after `leave_open`.
        """
        return self._is_committed

    async def abort(self) -> None:
        """Aborts the transaction; the end of the block then has no effect.

        Records that were not sent fail with TransactionAbortedError. Raises FatalTransactionError
        if the transaction cannot be aborted, or if its commit has raised this error. Raises
        ConfigurationError if the transaction is committed, or if another task is committing it. If
        the call is cancelled, it still aborts the transaction before it raises CancelledError,
        within `cancelled_close_ms` and `error_flush_ms`.
        """
        self._check_begun()
        if self._is_committed:
            raise ConfigurationError("the transaction is committed, and cannot be aborted")
        if (failure := self._failure) is not None:
            reason, transactional_id = failure.reason, failure.transactional_id
            raise type(failure)(reason, transactional_id, failure.cause) from failure.cause
        self._is_aborted = True
        try:
            await self._owner.abort(self)
        except ConfigurationError:
            self._is_aborted = False
            raise

    async def prepare(self) -> PreparedTransactionState:
        """Flushes the transaction, which then accepts no further records and offsets (KIP-939).

        The producer needs `two_phase_commit`. Store the returned state in a database, and commit
        the transaction of the database before the end of the block. The end of the block commits
        this transaction. If the program stops between the two commits, a new producer with the
        transactional id completes the transaction by `Producer.complete_transaction`, with the
        state in the database. An exception of the block still aborts the transaction.

        Raises TransactionAbortedError if a record or a commit of offsets has failed,
        FatalTransactionError if the producer cannot continue, and ConfigurationError outside of the
        block or without `two_phase_commit`.
        """
        self._check_begun()
        return await self._owner.prepare(self)

    async def leave_open(self) -> OpenTransaction:
        """Flushes the transaction, and leaves it open for another process.

        The other process ends the transaction by `Client.end_transaction`. The end of the block
        then has no effect, and the producer accepts nothing more: close it. Until the end of the
        transaction, consumers with `read_committed` get no later records of its partitions. A new
        producer with the transactional id aborts the transaction, and brokers abort it after
        `transaction_timeout_ms`.

        Raises TransactionAbortedError if a record or a commit of offsets has failed,
        FatalTransactionError if the producer cannot continue, and ConfigurationError outside of the
        block or for an empty transaction. After these errors, or if the call is cancelled, the end
        of the block aborts the transaction.
        """
        self._check_begun()
        opened = await self._owner.leave_open(self)
        self._is_left_open = True
        self._is_committed = None
        return opened

    async def commit_offsets(
        self,
        offsets: TransactionalOffsetSource | Mapping[TopicPartition, int | CommittedOffset],
        *,
        group_id: str | None = None,
    ) -> None:
        """Commits offsets of a group when the transaction is committed (KIP-447).

        `offsets` is a group consumer, or a mapping from partitions to the offset of the next record
        to be read, for the group `group_id`; an offset may be a `CommittedOffset` with metadata.
        For a consumer, commits the offsets after the last records that it has returned; the
        coordinator checks that the member of the consumer still owns the partitions. From this call
        on the consumer commits nothing by itself. After an abort, call `seek_to_committed` of the
        consumer to move its positions back.

        Raises TransactionAbortedError if the offsets are not committed, for example because the
        group has reassigned the partitions. Raises FatalTransactionError if the producer cannot
        continue, and ConfigurationError for invalid arguments or outside of the block.
        """
        self._check_begun()
        await self._owner.commit_offsets(self, _commit_of(offsets, group_id))

    def _check_begun(self) -> None:
        if not self._has_begun:
            raise ConfigurationError("use the transaction with `async with`")


def _commit_of(
    offsets: TransactionalOffsetSource | Mapping[TopicPartition, int | CommittedOffset],
    group_id: str | None,
) -> TransactionalCommit | TransactionalOffsetSource:
    if not isinstance(offsets, Mapping):
        if not hasattr(offsets, "_transactional_commit"):
            raise ConfigurationError(
                f"{offsets!r:.80} is no consumer of a group; pass one, or a mapping from "
                "partitions to offsets, and group_id"
            )
        if group_id is not None:
            raise ConfigurationError("the consumer has a group id: leave out group_id")
        return offsets
    if not isinstance(group_id, str) or not group_id:
        raise ConfigurationError(f"group_id is {group_id!r:.80}; offsets need the id of a group")
    return TransactionalCommit(group_id, None, checked_commits(offsets))
