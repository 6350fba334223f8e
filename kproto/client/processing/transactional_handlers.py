"""Wraps handlers that `run` calls with two arguments, if `run` has a transactional id.

The second argument is a `HandlerTransaction`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...records import Record
from .failure_policy import find_stop
from .handler_transaction import HandlerTransaction
from .handlers import BatchHandler, check_handler, checked_awaitable, decoded
from .run_transactions import RunTransactions

__all__ = ["TransactionalBatchHandler", "TransactionalHandler"]


class TransactionalHandler:
    """Calls the handler of `run` with a record and a `HandlerTransaction`.

    Then appends the records that the handler has sent. `transactions` is set when `run` starts.
    Raises ConfigurationError if `handler` cannot be called, or if `decode` is no plain function.
    """

    def __init__(
        self,
        handler: Callable[[Any, HandlerTransaction], Awaitable[object]],
        decode: Callable[[Record], Any] | None,
    ) -> None:
        check_handler(handler, decode)
        self._handler = handler
        self._decode = decode
        self.transactions: RunTransactions

    async def __call__(self, record: Record) -> None:
        """Calls the handler with one record; raises its error."""
        retained = self.transactions.failures.take(record)
        if retained is not None:
            raise retained
        shard = self.transactions.pool.current_shard
        transaction = HandlerTransaction()
        argument = record if self._decode is None else decoded(self._decode, record)
        try:
            await checked_awaitable(self._handler, self._handler(argument, transaction))
        except Exception as error:
            stop = find_stop(error)
            if stop is not None and stop.done:
                await self.transactions.append(shard, [record], transaction)
            raise
        finally:
            transaction._close()
        await self.transactions.append(shard, [record], transaction)


class TransactionalBatchHandler(BatchHandler):
    """Calls the handler of `run_batches` with records and a `HandlerTransaction`.

    Then appends the records that the handler has sent, even if the handler returns the errors of
    some records. `transactions` is set when `run_batches` starts.
    """

    __slots__ = ("transactions",)

    transactions: RunTransactions

    def _take_retained(self, record: Record) -> BaseException | None:
        return self.transactions.failures.take(record)

    async def _failures(
        self, records: list[Record], arguments: list[Any]
    ) -> dict[int, BaseException]:
        shard = self.transactions.pool.current_shard
        transaction = HandlerTransaction()
        try:
            answer = self._handler(arguments, transaction)
            failures = await self._checked_failures(answer, records)
        except Exception as error:
            stop = find_stop(error)
            if stop is not None and stop.done:
                await self.transactions.append(shard, records, transaction)
            raise
        finally:
            transaction._close()
        await self.transactions.append(shard, records, transaction)
        return failures
