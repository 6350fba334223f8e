"""`ProducerTransactions`: begins, commits and aborts the transactions of a producer.

The transaction manager has the state, and the driver sends its requests. This module waits for the
batches: a transaction ends only after all of its Produce requests, so that none of them is appended
after the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ...wire.errors import ConfigurationError, KprotoError
from ..commits.transactional_commit import TransactionalCommit, TransactionalOffsetSource
from ..core.tasks import shielded
from ..metadata.cluster_view import ClusterView
from .accumulator import RecordAccumulator
from .append_queues import AppendQueues
from .errors import TransactionAbortedError
from .sender import Sender
from .transactions.open_transaction import OpenTransaction
from .transactions.prepared_transaction import PreparedTransactionState
from .transactions.transaction_driver import TransactionDriver
from .transactions.transaction_manager import TransactionManager
from .transactions.transaction_state import TransactionState

__all__ = ["ProducerTransactions"]

_S = TransactionState

#: The argument `afterwards` of `shielded`, for a cancelled commit or abort that has not ended in
#: time.
_SUCCESSOR_ENDS: Final = (
    "the producer has failed, and a new producer with the transactional id starts once the "
    "transaction has ended"
)

logger = logging.getLogger("kproto.client")


class ProducerTransactions:
    """Runs one transaction after the other; `flush` waits for the outcome of all records."""

    def __init__(
        self,
        view: ClusterView,
        manager: TransactionManager,
        accumulator: RecordAccumulator,
        sender: Sender,
        append_queues: AppendQueues,
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._view = view
        self._manager = manager
        self._accumulator = accumulator
        self._sender = sender
        self._append_queues = append_queues
        self._flush = flush
        self._driver = TransactionDriver(view, manager)
        self._current: object | None = None  # the transaction that has begun, and has not ended
        self._awaiting_offsets: list[object] = []  # the transactions of calls that get offsets
        self._was_aborted = False  # the last transaction
        self._is_closed = False
        self._is_prepared = False  # the open transaction accepts no further records
        self._is_over_limit = False  # an abort does not wait for batches any more
        manager.on_change = self._on_change

    def _on_change(self) -> None:
        """Wakes the driver and the sender; drops the records that cannot be committed."""
        self._driver.wake()
        if self._manager.drops_unsent:
            self._append_queues.evict(self._manager.failure())
        if self._accumulator.active_queues:
            self._sender.wake()

    # Beginning

    async def initialize(self) -> None:
        """Requests a producer id, unless the producer is ready, and so fences other producers.

        Raises FatalTransactionError if the producer cannot continue. After an error that may pass,
        such as missing rights, raises the error of the request; a later call sends the request
        again.
        """
        manager = self._manager
        self._check_not_closed()
        if manager.state is _S.UNINITIALIZED:
            manager.initialize()
        await self._driver.wait_until(lambda: manager.state is not _S.INITIALIZING)
        self._raise_if_fatal()
        if manager.state is _S.UNINITIALIZED and manager.error is not None:
            raise manager.error

    async def begin(self, transaction: object) -> None:
        """Begins a transaction; raises ConfigurationError if another transaction is open."""
        self._view.loop_guard.check()
        self._check_not_closed()
        self._raise_if_fatal()
        if self._current is not None or self._manager.is_open:
            raise ConfigurationError(
                "the producer has an open transaction, and it has one at a time: wait for its end, "
                "or create another producer with another transactional id"
            )
        self._current = transaction
        self._was_aborted = False
        try:
            self._manager.use_version(self._driver.transaction_version)
            if self._manager.state is not _S.READY:
                await self.initialize()
            if self._manager.prepared is not None:
                raise ConfigurationError(
                    "an earlier producer has left a transaction open: complete it by "
                    "`producer.complete_transaction(…)` before the next transaction"
                )
            self._manager.begin(self._view.clock.monotonic())
            self._is_prepared = False
        except BaseException:
            self._current = None
            raise
        self._accumulator.producer_state.begin_transaction(self._manager.identity)

    def _check_not_closed(self) -> None:
        if self._is_closed:
            raise ConfigurationError("the producer is closed; create another one")

    # Two-phase commit

    @property
    def prepared(self) -> PreparedTransactionState | None:
        """The open transaction of an earlier producer; None if there is none."""
        found = self._manager.prepared
        return None if found is None else PreparedTransactionState(*found)

    async def prepare(self, transaction: object) -> PreparedTransactionState:
        """Flushes the transaction, and refuses further records; see `Transaction.prepare`."""
        manager = self._manager
        if not manager.has_two_phases:
            raise ConfigurationError(
                "the producer has no two-phase commit: create it by "
                "Client.producer(transactional_id=…, two_phase_commit=True)"
            )
        await self._store(transaction)
        return PreparedTransactionState(*manager.identity)

    async def leave_open(self, transaction: object) -> OpenTransaction:
        """Flushes the transaction, and leaves it open; see `Transaction.leave_open`."""
        manager = self._manager
        await self._store(transaction)
        if manager.is_empty:
            raise ConfigurationError(
                "the transaction has no records and no offsets, so there is nothing to leave open"
            )
        opened = OpenTransaction(
            manager.transactional_id,
            *manager.identity,
            manager.timeout_ms,
            manager.transaction_version,
        )
        self._current = None
        manager.leave_open()
        return opened

    async def _store(self, transaction: object) -> None:
        """Refuses further records and offsets, and waits until those of the transaction are stored.

        Raises the error of the transaction if something is not stored.
        """
        manager = self._manager
        self._check_current(transaction)
        self._is_prepared = True
        await self._until_stored(transaction)
        self._check_not_ended(transaction)
        if manager.state is not _S.IN_TRANSACTION:
            raise manager.failure() from manager.cause

    async def _until_stored(self, transaction: object) -> None:
        """Waits until all records and offsets of a transaction are stored, or its state changes."""
        manager = self._manager
        state = manager.state
        await self._flush()
        await self._driver.wait_until(
            lambda: (
                manager.state is not state
                or not (manager.is_adding or transaction in self._awaiting_offsets)
            )
        )

    async def complete(self, state: PreparedTransactionState | None) -> bool | None:
        """Ends the open transaction of an earlier producer; see `Producer.complete_transaction`."""
        manager = self._manager
        self._view.loop_guard.check()
        self._check_not_closed()
        self._raise_if_fatal()
        if self._current is not None or manager.is_open:
            raise ConfigurationError("the producer has an open transaction: wait for its end")
        transaction = self._current = object()
        try:
            if manager.state is not _S.READY:
                await self.initialize()
            prepared = self.prepared
            if prepared is None:
                return None
            manager.resume(self._view.clock.monotonic())
            self._is_prepared = True
            self._accumulator.producer_state.begin_transaction(manager.identity)
            if prepared == state:
                await self.commit(transaction, lambda: None)
            else:
                await self.abort(transaction)
            return prepared == state
        finally:
            if self._current is transaction:
                self._current = None

    # Offsets

    async def commit_offsets(
        self, transaction: object, commit: TransactionalCommit | TransactionalOffsetSource
    ) -> None:
        """Commits offsets with the transaction; returns when the group coordinator has them."""
        manager = self._manager
        self._check_current(transaction)
        if not isinstance(commit, TransactionalCommit):
            commit = await self._offsets_of(transaction, commit)
        if not commit.offsets:
            return
        manager.commit_offsets(commit)
        await self._driver.wait_until(lambda: not manager.is_pending(commit))
        if self._current is not transaction or manager.drops_unsent:
            if manager.cause is not None:
                commit.on_refused(manager.cause)
            raise manager.failure() from manager.cause

    async def _offsets_of(
        self, transaction: object, source: TransactionalOffsetSource
    ) -> TransactionalCommit:
        """Returns the offsets of a consumer; the commit of the transaction waits for this call.

        If the consumer cannot commit, the transaction is aborted, unless it has ended meanwhile.
        """
        manager = self._manager
        self._awaiting_offsets.append(transaction)
        try:
            commit = await source._transactional_commit()
            self._check_not_ended(transaction)
            return commit
        except ConfigurationError:
            raise
        except KprotoError as error:
            self._check_not_ended(transaction)
            now = self._view.clock.monotonic()
            manager.on_records_failed(error, now, has_sequence=False)
            raise manager.failure() from error
        finally:
            self._awaiting_offsets.remove(transaction)
            self._driver.wake()

    def _check_current(self, transaction: object) -> None:
        """Raises an error if nothing can be added to the transaction."""
        self._check_not_ended(transaction)
        self.check_may_send()

    def _check_not_ended(self, transaction: object) -> None:
        if self._current is not transaction:
            raise ConfigurationError("the transaction has ended; begin another one")

    # Ending

    @property
    def may_be_committed(self) -> bool:
        """True if the producer failed while it was unknown whether a transaction was committed."""
        return self._manager.may_be_committed

    async def commit(self, transaction: object, on_committed: Callable[[], None]) -> None:
        """Commits a transaction, and calls `on_committed`, even if `commit` is cancelled meanwhile.

        Raises TransactionAbortedError, after an abort, if a record or a commit of offsets has
        failed, or if the producer was closed. If the call is cancelled before EndTxn is sent, the
        transaction is aborted. If the call is cancelled later, it waits for the end of the
        transaction, within `cancelled_close_ms` and `error_flush_ms`. The commit of a prepared
        transaction sends EndTxn without a wait, so a cancellation cannot abort the transaction
        after the database has committed its own transaction.
        """
        self._raise_if_closed(transaction)
        manager = self._manager
        try:
            if manager.state is _S.IN_TRANSACTION:
                manager.begin_commit()
                if not self._is_prepared:
                    await self._until_stored(transaction)
            if manager.state is _S.COMMITTING_TRANSACTION:
                manager.end()
                await self._until_committed()
            await self._until_ended()  # another task may abort the transaction
        except BaseException as error:
            if self._current is transaction and manager.is_committed:  # before the cancellation
                self._current = None
                on_committed()
            else:
                await self.abort_after(transaction, error)
            raise
        if manager.state is _S.ABORTABLE_ERROR:
            failure, cause = manager.failure(), manager.cause
            undelivered = self._accumulator.failed_deliveries.take()
            await self.abort(transaction)
            raise failure from undelivered or cause
        self._raise_if_fatal()
        self._raise_if_closed(transaction)
        self._current = None
        if manager.is_committed:  # otherwise another task has aborted it
            on_committed()

    def _raise_if_closed(self, transaction: object) -> None:
        if self._current is not transaction:
            raise TransactionAbortedError(
                "the producer was closed, which has aborted the transaction",
                self._manager.transactional_id,
            )

    async def _until_committed(self) -> None:
        """Waits until EndTxn has a result, for a limited time if the call is cancelled.

        Starts a task for the wait only after a cancellation: a task per transaction costs time.
        """
        try:
            await self._until_ended()
        except asyncio.CancelledError:
            try:
                await shielded(
                    self._or_give_up(self._until_ended()),
                    self._view.clock,
                    self._view.settings.max_cancelled_close_ms,
                    what="the commit of a transaction",
                    afterwards=_SUCCESSOR_ENDS,
                    is_cancelled=True,
                )
            except KprotoError as error:
                logger.warning("not raised, because the call was cancelled: %r", error)
            raise
        except BaseException:
            self._manager.give_up()
            raise

    async def _until_ended(self) -> None:
        """Waits until EndTxn has a result."""
        manager = self._manager
        ending = (_S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION)
        await self._driver.wait_until(lambda: manager.state not in ending)

    async def _or_give_up(self, ending: Awaitable[None]) -> None:
        """Waits for the end of the transaction; if the wait is cancelled, the producer fails."""
        try:
            await ending
        except BaseException:
            self._manager.give_up()
            raise

    async def abort(self, transaction: object, *, is_cancelled: bool = False) -> None:
        """Aborts a transaction if it has not ended; continues if the call is cancelled.

        Raises FatalTransactionError if the transaction cannot be aborted, and ConfigurationError if
        it is committed, or if EndTxn was already sent to commit it.
        """
        if self._current is not transaction:
            return
        if self._manager.is_committing:
            raise ConfigurationError("the transaction is being committed, and cannot be aborted")
        if self._manager.is_committed:
            raise ConfigurationError("the transaction is committed, and cannot be aborted")
        settings = self._view.settings
        self._was_aborted = True
        self._is_over_limit = False
        try:
            if self._manager.is_open:
                self._begin_abort()  # before any wait: from now on no task can commit
                await shielded(
                    self._or_give_up(self._abort()),
                    self._view.clock,
                    settings.cancelled_close_ms,
                    what="the abort of a transaction",
                    afterwards=_SUCCESSOR_ENDS,
                    is_cancelled=is_cancelled,
                    on_limit=self._stop_waiting,
                    rest_ms=settings.error_flush_ms,
                )
        finally:
            if self._current is transaction:  # the next one may have begun in another task
                self._current = None
        self._raise_if_fatal()

    async def abort_after(self, transaction: object, error: BaseException) -> None:
        """Aborts a transaction after `error`, which gets a note if the abort fails."""
        is_cancelled = isinstance(error, asyncio.CancelledError)
        try:
            await self.abort(transaction, is_cancelled=is_cancelled)
        except KprotoError as failure:
            error.add_note(f"besides: {failure}")
            logger.warning("a transaction was not aborted: %s", failure)

    def _raise_if_fatal(self) -> None:
        if self._manager.state is _S.FATAL_ERROR:
            raise self._manager.failure() from self._manager.cause

    def _stop_waiting(self) -> None:
        self._is_over_limit = True
        self._sender.completed.set()

    def _begin_abort(self) -> None:
        """Begins the abort of the open transaction, unless another task has begun it."""
        if self._manager.state is not _S.ABORTING_TRANSACTION:
            self._manager.begin_abort()

    async def _abort(self) -> None:
        """Ends the abort that has begun, once no Produce request is in flight any more.

        After a cancelled call, the next call continues the abort.
        """
        if self._manager.state is not _S.ABORTING_TRANSACTION:  # another task has ended it
            return
        await self._until_requests_done()
        is_in_doubt = bool(self._accumulator.incomplete) or self._sender.has_requests
        self._accumulator.fail_incomplete(
            TransactionAbortedError("the transaction was aborted", self._manager.transactional_id)
        )
        # The caller, which aborts the transaction, expects these failures.
        self._accumulator.failed_deliveries.take()
        if self._manager.state is _S.ABORTING_TRANSACTION:
            self._manager.end(is_in_doubt=is_in_doubt)
        await self._until_ended()

    async def _until_requests_done(self) -> None:
        """Waits until no batch is incomplete, and no Produce request is in flight."""
        completed = self._sender.completed
        self._sender.wake()
        while (
            self._accumulator.incomplete or self._sender.has_requests
        ) and not self._is_over_limit:
            completed.clear()
            await completed.wait()

    # Closing

    async def close(self) -> None:
        """Aborts the open transaction, or waits for its end; refuses further transactions.

        After a cancelled call, the next call continues the close.
        """
        self._is_closed = True
        manager = self._manager
        if manager.state is _S.IN_TRANSACTION:
            logger.warning(
                "the producer with transactional id %r is closed, which aborts its transaction",
                manager.transactional_id,
            )
        await self._until_ended()
        if manager.is_open:  # also after the commit, or a record of it, has failed
            self._current = None
            self._begin_abort()
            await self._abort()
        await self._until_ended()

    async def stop(self) -> None:
        """Abandons a transaction that has not ended, and ends the driver."""
        self._is_closed = True
        self._manager.give_up()
        await self._driver.close()

    # The appender

    def check_may_send(self) -> None:
        """Raises an error if no transaction accepts records.

        Raises ConfigurationError outside of a transaction, and TransactionAbortedError or
        FatalTransactionError after an error.
        """
        manager = self._manager
        if manager.state is _S.IN_TRANSACTION and not self._is_prepared:
            return
        if manager.state in (_S.ABORTABLE_ERROR, _S.FATAL_ERROR):
            raise manager.failure() from manager.cause
        what = "its transaction is ending" if manager.is_open else "no transaction is open"
        if self._was_aborted and not manager.is_open:
            what = "no transaction is open, because the last one was aborted"
        if manager.state is _S.IN_TRANSACTION:
            what = "its transaction is prepared"
        raise ConfigurationError(
            f"the producer has transactional_id {manager.transactional_id!r}, and {what}: send "
            "records inside of `async with producer.transaction():`"
        )
