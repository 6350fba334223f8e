"""`OpenTransaction`: a transaction that one process has written, and another process ends.

The process that ends it needs no producer: EndTxn has the transactional id, the producer id and the
epoch. It must not begin with InitProducerId, because InitProducerId aborts an open transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from ...metadata.cluster_view import ClusterView
from ..errors import FencedTransactionError, TransactionError
from ..producer_state import ProducerIdAndEpoch
from .transaction_driver import TransactionDriver
from .transaction_manager import TransactionManager
from .transaction_state import TransactionState

__all__ = ["OpenTransaction", "end_transaction"]

_S = TransactionState


class OpenTransaction(NamedTuple):
    """Names a transaction that `Transaction.leave_open` has left open.

    `timeout_ms` is the time after its begin at which brokers abort it. `transaction_version` is 2
    if the transaction was begun with transaction version 2 (KIP-890), otherwise 1.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    transaction_version: int


async def end_transaction(view: ClusterView, opened: OpenTransaction, *, committed: bool) -> None:
    """Sends EndTxn for a transaction; see `Client.end_transaction`."""
    manager = TransactionManager(view.settings, opened.transactional_id, opened.timeout_ms)
    manager.take_over(
        ProducerIdAndEpoch(opened.producer_id, opened.epoch),
        opened.transaction_version,
        view.clock.monotonic(),
    )
    driver = TransactionDriver(view, manager)
    manager.on_change = driver.wake
    if committed:
        manager.begin_commit()
    else:
        manager.begin_abort()
    ending = (_S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION)
    failure = None
    try:
        manager.end()
        await driver.wait_until(lambda: manager.state not in ending)
        if manager.state is _S.ABORTABLE_ERROR:
            failure = manager.failure()
            manager.begin_abort()
            manager.end()
            await driver.wait_until(lambda: manager.state not in ending)
    finally:
        manager.give_up()
        await driver.close()
    if failure is not None:
        raise failure from failure.cause
    if manager.state is not _S.READY:
        raise _failure(manager, opened) from manager.cause


def _failure(manager: TransactionManager, opened: OpenTransaction) -> TransactionError:
    """Returns the failure of the manager; the manager does not know when the transaction began."""
    failure = manager.failure()
    if not isinstance(failure, FencedTransactionError):
        return failure
    why = (
        "another producer has taken over the transactional id, or the transaction has lasted "
        f"longer than transaction_timeout_ms ({opened.timeout_ms})"
    )
    return FencedTransactionError(why, opened.transactional_id, failure.cause)
