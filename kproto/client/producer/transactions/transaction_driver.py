"""`TransactionDriver`: sends the requests of the transaction manager, one after the other.

A request is written at once if the connection to its coordinator is open and accepts the request,
and the response is processed in the iteration of the event loop in which it arrives. A task runs
only for requests that must wait. So a call that waits for a result can be cancelled without an
effect on the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ....messages.base import Request, Response
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
    TransactionResult,
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
    """Sends requests, from `wake` until the manager has no request.

    `transaction_version` is the transaction version that the transaction coordinator supported at
    its last request.
    """

    def __init__(self, view: ClusterView, manager: TransactionManager) -> None:
        self.transaction_version = 1
        self._view = view
        self._manager = manager
        self._task: asyncio.Task[None] | None = None
        self._is_scheduled = False
        self._changed = asyncio.Event()
        self._is_closed = False

    def wake(self) -> None:
        """Wakes the waiting calls, and sends the next request, if there is one.

        Sends it in the next iteration of the event loop, when the manager has a consistent state.
        """
        self._changed.set()
        if self._is_idle and self._manager.next_request() is not None:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_once)

    @property
    def _is_idle(self) -> bool:
        return self._task is None and not self._is_scheduled and not self._is_closed

    def _run_once(self) -> None:
        """Sends the next request at once, or starts a task for it if it must wait."""
        self._is_scheduled = False
        if not self._is_idle or (request := self._manager.next_request()) is None:
            return
        try:
            is_sent = self._try_send(request)
        except BaseException as fault:
            if not isinstance(fault, Exception):
                raise
            self._on_fault(fault)
            return
        if not is_sent:
            self._task = start_task(self._run())
            self._task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._on_fault(fault)
        self.wake()  # a request may have become due since

    def _on_fault(self, fault: BaseException) -> None:
        context = {
            "message": "an internal error of the producer ended its transactions",
            "exception": fault,
        }
        self._manager.on_fault(KprotoError(f"an internal error: {fault!r}"))
        asyncio.get_running_loop().call_exception_handler(context)

    async def close(self) -> None:
        """Ends the task; responses to requests in flight have no effect any more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._changed.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until `condition()` is True; calls it after each `wake`, and after `close`.

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
        api: TransactionApi | None = TransactionApi.FIND_COORDINATOR
        try:
            connection = await self._connection(request, must_find=must_find)
            api = None
            message, version = self._message(request, connection)
            result = result_of(request, await connection.request(message, version=version))
        except KprotoError as error:
            self._on_error(request, error, api)
        else:
            self._on_result(request, result)

    def _try_send(self, request: TransactionRequest) -> bool:
        """Writes a request at once, and returns True; returns False if it must wait.

        InitProducerId always waits. Also returns False if the request cannot be built: the task
        then reports the error.
        """
        manager = self._manager
        now = self._view.clock.monotonic()
        if (
            isinstance(request, InitProducerId)
            or manager.must_find_coordinator
            or manager.not_before > now
        ):
            return False
        connection = self._open_connection(request)
        if connection is None:
            return False
        try:
            message, version = self._message(request, connection)
            callback = partial(self._on_outcome, request)
            if not connection.try_send(message, version=version, callback=callback):
                return False
        except KprotoError:
            return False
        manager.on_sent(request, now)
        return True

    def _on_outcome(self, request: TransactionRequest, outcome: Response | KprotoError) -> None:
        """Processes the response to a request that `_try_send` has written, or its error."""
        if self._is_closed:
            return
        try:
            if isinstance(outcome, KprotoError):
                self._on_error(request, outcome, None)
                return
            try:
                result = result_of(request, outcome)
            except KprotoError as error:
                self._on_error(request, error, None)
            else:
                self._on_result(request, result)
        except BaseException as fault:
            if not isinstance(fault, Exception):
                raise
            self._on_fault(fault)

    def _message(
        self, request: TransactionRequest, connection: BrokerConnection
    ) -> tuple[Request[Any], int]:
        """Returns the message of a request, and its version on a connection."""
        manager = self._manager
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
        return message, version

    def _on_result(self, request: TransactionRequest, result: TransactionResult) -> None:
        view, manager = self._view, self._manager
        manager.on_response(result, view.clock.monotonic())
        if isinstance(request, InitProducerId):
            view.observer.producer_id_assigned(*manager.identity)

    def _on_error(
        self, request: TransactionRequest, error: KprotoError, api: TransactionApi | None
    ) -> None:
        view, manager = self._view, self._manager
        if isinstance(error, BrokerConnectionError | RequestTimeoutError):
            view.invalidate_brokers()
        if isinstance(request, InitProducerId):
            error = _without_transactions(error)
        manager.on_error(error, view.clock.monotonic(), api)
        if manager.attempts.count:
            view.observer.retried("transaction", error, manager.attempts)

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

    def _open_connection(self, request: TransactionRequest) -> BrokerConnection | None:
        """Returns the open connection to the coordinator; None if there is none."""
        if isinstance(request, CommitOffsets):
            return self._view.open_group_coordinator(request.commit.group_id)
        return self._view.open_transaction_coordinator(self._manager.transactional_id)


def _without_transactions(error: KprotoError) -> KprotoError:
    """Returns the error of InitProducerId; names the reason if brokers have no transactions."""
    if not isinstance(error, UnsupportedVersionError | EncodeError):
        return error
    return UnsupportedVersionError(
        f"the brokers have no transactions, because they are older than Kafka 0.11 ({error})"
    )


def _transaction_version(connection: BrokerConnection) -> int:
    """Returns the transaction version that the cluster of a broker supports: 1 or 2.

    The version is 2 if two conditions hold: the cluster has finalized transaction.version 2, and
    the connection supports the API versions that transaction version 2 needs. Otherwise it is 1.
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
