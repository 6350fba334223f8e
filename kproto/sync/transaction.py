"""`Transaction` without `await`.

`python -m tools.sync` writes this module from `kproto/client/producer/transactions/transaction.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ..client.commits.offset_requests import CommittedOffset
from ..client.metadata.cluster import TopicPartition
from ..client.producer.transactions.open_transaction import OpenTransaction
from ..client.producer.transactions.prepared_transaction import PreparedTransactionState
from ..client.producer.transactions.transaction import Transaction as _Transaction
from .group_consumer import GroupConsumer
from .wrapper import Wrapper

__all__ = ["Transaction"]


class Transaction(Wrapper[_Transaction]):
    """A transaction of a producer with a transactional id (KIP-98), to be used with `with`.

    All records that the producer sends in the block belong to the transaction. The end of the block
    commits the transaction: it waits until all records are acked, and raises
    TransactionAbortedError, after an abort, if a record or a commit of offsets has failed. If the
    block raises an exception, the transaction is aborted. If an interruption by Ctrl-C arrives
    during the commit, the transaction may be committed all the same: `is_committed` has the
    outcome. An ack of a record means that the record is written, not that it is committed:
    consumers with `read_committed` get the record once the transaction is committed.

    The begin and the end of the block raise FatalTransactionError if the producer cannot continue,
    and ProducerFencedError if another producer has taken over the transactional id. If no response
    to the commit arrives within its time limit, it is unknown whether the transaction is committed;
    the text of the FatalTransactionError says so.
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
        self._call(self._wrapped.__aexit__, kind, error, traceback)

    @property
    def is_committed(self) -> bool | None:
        """True if the transaction is committed, False if not; None if that is unknown.

        Read it after an interruption by Ctrl-C that may have arrived during the end of the block.
        The outcome is unknown if no response to the commit arrived in time, and after `leave_open`.
        """
        return self._read(lambda: self._wrapped.is_committed)

    def abort(self) -> None:
        """Aborts the transaction; the end of the block then has no effect.

        Records that were not sent fail with TransactionAbortedError. Raises FatalTransactionError
        if the transaction cannot be aborted, or if its commit has raised this error. Raises
        ConfigurationError if the transaction is committed, or if another thread is committing it.
        If Ctrl-C interrupts the call, the event loop's thread still aborts the transaction, while
        the call raises KeyboardInterrupt, within `cancelled_close_ms` and `error_flush_ms`.
        """
        self._call(self._wrapped.abort)

    def prepare(self) -> PreparedTransactionState:
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
        return self._call(self._wrapped.prepare)

    def leave_open(self) -> OpenTransaction:
        """Flushes the transaction, and leaves it open for another process.

        The other process ends the transaction by `Client.end_transaction`. The end of the block
        then has no effect, and the producer accepts nothing more: close it. Until the end of the
        transaction, consumers with `read_committed` get no later records of its partitions. A new
        producer with the transactional id aborts the transaction, and brokers abort it after
        `transaction_timeout_ms`.

        Raises TransactionAbortedError if a record or a commit of offsets has failed,
        FatalTransactionError if the producer cannot continue, and ConfigurationError outside of the
        block or for an empty transaction. After these errors, or if Ctrl-C interrupts the call, the
        end of the block aborts the transaction.
        """
        return self._call(self._wrapped.leave_open)

    def commit_offsets(
        self,
        offsets: GroupConsumer[Any, Any, Any] | Mapping[TopicPartition, int | CommittedOffset],
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
        source = offsets._wrapped if isinstance(offsets, GroupConsumer) else offsets
        return self._call(self._wrapped.commit_offsets, source, group_id=group_id)
