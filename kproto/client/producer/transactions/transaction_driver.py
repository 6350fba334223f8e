"""`TransactionDriver`: sends the requests of the transaction manager, one after the other.

A task runs while there are requests. So a call that waits for a result can be cancelled without an
effect on the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ....messages.end_txn_request import EndTxnRequest
from ....messages.produce_request import ProduceRequest
from ....messages.txn_offset_commit_request import TxnOffsetCommitRequest
from ....tasks import start_task
from ....wire.errors import (
    BrokerConnectionError,
    EncodeError,
    KprotoError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from ...metadata.cluster_view import ClusterView
from ...network.connection import BrokerConnection
from .transaction_errors import TransactionApi
from .transaction_manager import TransactionManager
from .transaction_requests import (
    EPOCH_BUMP_VERSION,
    FIRST_WITH_EPOCH,
    CommitOffsets,
    InitProducerId,
    TransactionRequest,
    highest_version,
    message_class_of,
    message_of,
    result_of,
)

__all__ = ["TransactionDriver"]

#: The feature whose finalized level 2 lets clients use transaction version 2 (KIP-890).
_FEATURE: Final = "transaction.version"

#: The first versions of Produce, EndTxn and TxnOffsetCommit for transaction version 2 (KIP-890).
_FIRST_PRODUCE: Final = 12
_FIRST_END_TXN: Final = 5
_FIRST_TXN_OFFSET_COMMIT: Final = 5


class TransactionDriver:
    """Sends requests in a task of its own, from `wake` until the manager has no request.

    `transaction_version` is the highest that the coordinator has supported lately.
    """

    def __init__(self, view: ClusterView, manager: TransactionManager) -> None:
        self.transaction_version = 1
        self._view = view
        self._manager = manager
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_closed = False

    def wake(self) -> None:
        """Wakes the waiting calls, and sends the next request, if there is one."""
        self._changed.set()
        if self._task is None and not self._is_closed and self._manager.next_request() is not None:
            self._task = start_task(self._run())
            self._task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (fault := task.exception()) is not None:
            context = {
                "message": "an internal error of the producer ended its transactions",
                "exception": fault,
            }
            self._manager.on_fault(KprotoError(f"an internal error: {fault!r}"))
            asyncio.get_running_loop().call_exception_handler(context)
        self.wake()  # a request may have become due since

    async def close(self) -> None:
        """Ends the task; requests in flight have no effect any more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._changed.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until `condition()` is True; it is called after each `wake`, and after `close`.

        Raises KprotoError if the driver is closed first.
        """
        while not condition():
            if self._is_closed:
                raise KprotoError("the producer was closed before that")
            self._changed.clear()
            await self._changed.wait()

    async def _run(self) -> None:
        manager, clock = self._manager, self._view.clock
        while (request := manager.next_request()) is not None:
            now = clock.monotonic()
            if manager.not_before > now:
                await self._view.sleep_until(manager.not_before)
                continue  # another request may be due by now
            must_find = manager.must_find_coordinator
            manager.on_sent(request, now)
            await self._send(request, must_find=must_find)

    async def _send(self, request: TransactionRequest, *, must_find: bool) -> None:
        """Sends a request; passes the response or the error to the manager."""
        view, manager = self._view, self._manager
        api: TransactionApi | None = TransactionApi.FIND_COORDINATOR
        try:
            connection = await self._connection(request, must_find=must_find)
            api = None
            if not isinstance(request, CommitOffsets):
                self.transaction_version = _transaction_version(connection)
            if isinstance(request, InitProducerId):
                manager.use_version(self.transaction_version)
            version = connection.version_of(
                message_class_of(request), highest_version(request, manager.transaction_version)
            )
            if isinstance(request, InitProducerId):
                manager.supports_epoch_bump = version >= FIRST_WITH_EPOCH
            message = message_of(
                request, manager.transactional_id, manager.timeout_ms, manager.identity, version
            )
            result = result_of(request, await connection.request(message, version=version))
        except KprotoError as error:
            if isinstance(error, BrokerConnectionError | RequestTimeoutError):
                view.invalidate_brokers()
            if isinstance(request, InitProducerId):
                error = _without_transactions(error)
            manager.on_error(error, view.clock.monotonic(), api)
            if manager.attempts.count:
                view.observer.retried("transaction", error, manager.attempts)
        else:
            manager.on_response(result, view.clock.monotonic())
            if isinstance(request, InitProducerId):
                view.observer.producer_id_assigned(*manager.identity)

    async def _connection(
        self, request: TransactionRequest, *, must_find: bool
    ) -> BrokerConnection:
        """Returns a connection to the coordinator of the group or the transactional id."""
        view = self._view
        await view.refresh_invalid_brokers()
        if isinstance(request, CommitOffsets):
            group_id = request.commit.group_id
            if must_find:
                view.forget_group_coordinator(group_id)
            return await view.connection_to(await view.group_coordinator(group_id))
        transactional_id = self._manager.transactional_id
        if must_find:
            view.forget_transaction_coordinator(transactional_id)
        return await view.connection_to(await view.transaction_coordinator(transactional_id))


def _without_transactions(error: KprotoError) -> KprotoError:
    """Returns the error of InitProducerId; names the reason if brokers have no transactions."""
    if not isinstance(error, UnsupportedVersionError | EncodeError):
        return error
    return UnsupportedVersionError(
        f"the brokers have no transactions, because they are older than Kafka 0.11 ({error})"
    )


def _transaction_version(connection: BrokerConnection) -> int:
    """Returns the transaction version that the cluster of a broker supports: 1 or 2.

    It is 2 if transaction.version is finalized at level 2, and the client may use the versions of
    the APIs that belong to it.
    """
    if connection.finalized_features.get(_FEATURE, 0) < EPOCH_BUMP_VERSION:
        return 1
    try:
        is_supported = (
            connection.version_of(ProduceRequest) >= _FIRST_PRODUCE
            and connection.version_of(EndTxnRequest) >= _FIRST_END_TXN
            and connection.version_of(TxnOffsetCommitRequest) >= _FIRST_TXN_OFFSET_COMMIT
        )
    except UnsupportedVersionError:
        return 1
    return EPOCH_BUMP_VERSION if is_supported else 1
