"""`RunTransactions`: commits the records that handlers send, with offsets, in transactions.

`RunTransactions` is the `AckSink` of `run` with a transactional id. A task of its own begins,
commits and aborts the transactions, as `transaction_cycle` decides. After an abort the task drops
all records of the pool, and moves the positions back to the committed offsets: the records of the
transaction are polled again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ...clock import Clock
from ...protocol.broker_errors import RecordTooLargeError
from ...records import Record
from ...tasks import start_task
from ...wire.errors import (
    ConfigurationError,
    EncodeError,
    KprotoError,
)
from ..core.tasks import LONGEST_TIMER_S, until_ended
from ..producer_record import ProducerRecord
from ..settings import ClientSettings
from .handler_transaction import HandlerTransaction
from .ports import RestartablePool, TransactionalConsumer, TransactionalProducer
from .retained_failures import RetainedFailures, TransactionRestartedError
from .shard import Shard
from .transaction_cycle import CyclePhase, CycleStep, TransactionCycle

__all__ = ["RunTransactions"]

logger = logging.getLogger("kproto.client")

_LOST: Final = "partitions were lost whose records are in the transaction"
_REBALANCE: Final = "the rebalance of the group takes longer than half of the transaction timeout"


def _ignore(error: KprotoError, is_refusal: bool) -> None:
    """Does nothing: the caller awaits the error."""


class RunTransactions:
    """Runs the transactions of one `run()`, from `start` to `close`.

    `pool` is set before the first record is polled. `RunTransactions` is also the `RecordSink` of
    forwarded records: a dead letter is in the same transaction as the offset of the failed record.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        consumer: TransactionalConsumer,
        clock: Clock,
        settings: ClientSettings,
        transaction_timeout_ms: int,
        group_id: str,
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._clock = clock
        self._cycle = TransactionCycle(settings, transaction_timeout_ms)
        self._group_id = group_id
        self.pool: RestartablePool
        self.failures = RetainedFailures()
        self._changed = asyncio.Event()
        self._begin_lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    # Start and end

    async def start(self, is_stopping: asyncio.Event) -> None:
        """Fences other producers with the transactional id, and stops commits of the consumer.

        Returns at once if `is_stopping` is set: then no transaction is begun.
        """
        starting = start_task(self._start())
        stopping = start_task(is_stopping.wait())
        try:
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not starting.done():
                starting.cancel()
            await until_ended([starting, stopping])
        if not starting.cancelled():
            starting.result()
            self._task = start_task(self._run())

    async def _start(self) -> None:
        await self._producer.start()
        await self._consumer.stop_commits()

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Ends the task, aborts a transaction that is open, and closes the producer."""
        if self._task is not None:
            self._task.cancel()
            await until_ended([self._task])
            self._task = None
        try:
            await self._producer.close(timeout_ms=timeout_ms)
        finally:
            if self._cycle.is_open or self._cycle.phase is not CyclePhase.ACCEPTING:
                self._consumer.seek_later()

    async def _run(self) -> None:
        try:
            await self._take_steps()
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)

    async def _take_steps(self) -> None:
        """Takes one step after the other, until the producer cannot continue."""
        while True:
            now = self._clock.monotonic()
            can_commit = self._consumer.can_commit
            step, at = self._cycle.next_step(now, can_commit=can_commit)
            if step is CycleStep.END:
                return
            if step is CycleStep.WAIT or at > now:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with self._clock.timeout(min(max(0.0, at - now), LONGEST_TIMER_S)):
                        await self._changed.wait()
            elif step is CycleStep.COMMIT and not can_commit:
                self._cycle.postpone_commit()
                self._changed.set()
            elif step is CycleStep.COMMIT:
                await self._commit()
            else:
                await self._restart()

    def _fail(self, error: BaseException) -> None:
        self._cycle.fail()
        self.pool.fail(error)
        self._changed.set()

    # Committing

    def acknowledge_soon(self) -> None:
        """Commits the transaction soon."""
        self._cycle.request_commit()
        self._changed.set()

    async def acknowledge(self, limit_ms: int) -> None:
        """Commits the last transaction within `limit_ms`.

        If the transaction does not end in time, logs a warning: the transaction is aborted, and its
        records are redelivered. Commits nothing if the member has failed.
        """
        if self._task is None:  # it was stopped before its start
            return
        try:
            await self._commit_until(self._clock.monotonic() + limit_ms / 1000)
        except TimeoutError:
            logger.warning(
                "group %s: the last transaction of run() did not end within %d ms; it is aborted, "
                "and its records are redelivered",
                self._group_id,
                limit_ms,
            )
            self._cycle.fail()
            self._changed.set()

    async def end_before_release(self, until: float) -> None:
        """Commits the transaction by `until`, before other members own its partitions.

        After that time the coordinator refuses the offsets, and the transaction is aborted.
        """
        with suppress(TimeoutError):
            await self._commit_until(until)

    async def _commit_until(self, until: float) -> None:
        """Commits all that is processed now, unless the member has failed.

        Raises TimeoutError at `until`, in seconds of the clock.
        """
        request = self._cycle.request_commit()
        self._changed.set()
        async with self._clock.timeout(max(0.0, until - self._clock.monotonic())):
            while not self._cycle.is_done(request) and not self._consumer.has_failed:
                self._changed.clear()
                await self._changed.wait()

    async def _commit(self) -> None:
        """Commits the transaction; begins it first if only offsets are to be committed."""
        cycle = self._cycle
        if not self._consumer.owns(cycle.touched):
            self._restart_because(_LOST)
            return
        commit = self._consumer.processed_commit()
        cycle.on_commit_started()
        if not cycle.is_open and not commit.offsets:
            cycle.on_committed()
            self._changed.set()
            return
        await self._begin()
        error = await self._producer.commit(commit)
        if error is None:
            cycle.on_committed()
            self.failures.forget_before({tp: its.offset for tp, its in commit.offsets.items()})
        else:
            self._restart_because(error)
        self._changed.set()

    async def _begin(self) -> None:
        if self._cycle.is_open:
            return
        async with self._begin_lock:
            if not self._cycle.is_open:
                await self._producer.begin()
                self._cycle.on_begun(self._clock.monotonic())

    # Restarting

    def on_lost(self, epochs: Collection[object]) -> None:
        """Aborts the transaction if it has records of lost partitions."""
        if self._cycle.is_touched(epochs):
            self._restart_because(_LOST)

    def _restart_because(self, cause: object) -> None:
        """Makes the task abort the transaction; drops all records of the pool at once."""
        if self._cycle.restart():
            self._log_restart(cause)
            self.pool.suspend()
        self._changed.set()

    def _log_restart(self, cause: object) -> None:
        text = "group %s: the transaction of run() is aborted, and its records are polled again: %s"
        logger.warning(text, self._group_id, cause)

    async def _restart(self) -> None:
        """Aborts the transaction, and moves the positions back; repeats the move if it fails."""
        cycle, clock = self._cycle, self._clock
        if cycle.is_overdue:
            self._log_restart(_REBALANCE)
            self.pool.suspend()
        await self._producer.abort()
        while cycle.appending:  # calls of the aborted transaction; they may have begun another one
            self._changed.clear()
            await self._changed.wait()
        await self._producer.abort()
        cycle.is_open = False
        try:
            await self._consumer.seek_to_committed()
        except ConfigurationError:  # the consumer is closed
            raise
        except KprotoError as error:
            logger.warning("group %s: positions were not moved back: %s", self._group_id, error)
            cycle.on_restart_failed(clock.monotonic())
            return
        cycle.on_restarted(clock.monotonic())
        self.pool.continue_polling()
        self._changed.set()

    # Appending

    async def append(
        self, shard: Shard, records: Sequence[Record], call: HandlerTransaction
    ) -> None:
        """Appends the records that a handler has sent for `records` of `shard`.

        Raises TransactionRestartedError if `records` are polled again, and the errors of invalid
        records that the handler has sent.
        """
        sent = call._close()
        for topic in {topic for topic, _ in sent}:
            await self._producer.ensure_topic(topic)
        await self._enter(shard)
        number = self._cycle.number
        has_appended = False
        try:
            if sent:
                await self._begin()
            for topic, record in sent:
                if shard.is_lost:
                    raise TransactionRestartedError
                on_failed = partial(self._on_record_failed, records, number)
                await self._producer.append(topic, record, on_failed)
                has_appended = True
        except (EncodeError, ConfigurationError) as error:
            if not has_appended:
                raise
            self.failures.retain(records, error)
            self._restart_because(error)
            raise TransactionRestartedError from error
        except KprotoError as error:
            self._on_record_failed(records, number, error, self._producer.is_refusal(error))
            raise TransactionRestartedError from error
        except asyncio.CancelledError as error:
            if sent:  # a part of the records may be in the transaction
                self._restart_because(error)
            raise
        finally:
            self._leave()

    async def _enter(self, shard: Shard) -> None:
        """Waits until the transaction accepts records.

        Raises TransactionRestartedError if records of `shard` are polled again.
        """
        while not self._cycle.accepts_records and not shard.is_lost:
            if self._cycle.phase is CyclePhase.FAILED:
                break
            self._changed.clear()
            await self._changed.wait()
        if shard.is_lost or not self._cycle.accepts_records:
            raise TransactionRestartedError
        self._cycle.on_append(shard.assignment_epoch)

    def _leave(self) -> None:
        self._cycle.on_append_done()
        self._changed.set()

    def _on_record_failed(
        self,
        records: Sequence[Record],
        number: int,
        error: KprotoError,
        is_refusal: bool,
    ) -> None:
        """Aborts transaction `number`; after a refusal, the handled `records` have failed."""
        if number != self._cycle.number:
            return
        if is_refusal:
            self.failures.retain(records, error)
        self._restart_because(error)

    # The RecordSink of forwarded records

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Any = (),
    ) -> None:
        """Sends a forwarded record in the transaction, and waits for its ack.

        Raises TransactionRestartedError if the handled record is polled again. If the forwarded
        record is refused, raises its error, and the transaction is aborted.
        """
        shard = self.pool.current_shard
        await self._enter(shard)
        try:
            await self._begin()
            if shard.is_lost:
                raise TransactionRestartedError
            record = ProducerRecord(value, key, headers)
            await (await self._producer.append(topic, record, _ignore))
        except KprotoError as error:
            self._restart_because(error)
            if isinstance(getattr(error, "cause", None), RecordTooLargeError):
                raise TransactionRestartedError(error) from error
            if self._producer.is_refusal(error):
                raise
            raise TransactionRestartedError from error
        except asyncio.CancelledError as error:
            self._restart_because(error)
            raise
        finally:
            self._leave()
