"""Sends the batches of one task in a transaction, which the driver commits; see `micro_batch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import CommittedOffset

from .errors import ExactlyOnceError
from .micro_batch import MicroBatch, StoredBatch, TaskAction, WrittenRows, action_of, stored_batch
from .task_producer import EncodedBatch, TaskProducer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto import Client, OpenTransaction, Producer

    from ..options.option_table import WriteOptions

__all__ = ["TransactionalTaskProducer"]


class TransactionalTaskProducer(TaskProducer):
    """The producer of a task of the exactly-once sink.

    After `finish`, `transaction` is the transaction that the driver must commit; None if the task
    had no rows, or if an earlier attempt of the micro-batch has committed them. `topic` is the
    topic of the first row.
    """

    def __init__(self, options: WriteOptions, batch: MicroBatch, task: int) -> None:
        self.topic = ""
        self.transaction: OpenTransaction | None = None
        self._batch = batch
        self._number = task
        self._written = WrittenRows(0, 0)
        super().__init__(options)

    def finish(self, written: WrittenRows) -> None:
        """Waits until every batch and the batch id are stored in the open transaction.

        `written` is the number and the checksum of the rows.

        Raises:
            ExactlyOnceError: the rows differ from those that are committed for this micro-batch.
            RowError: as in `TaskProducer.finish`.
            KprotoError: no broker is reachable, or the transaction has failed.
        """
        self._written = written
        super().finish(written)

    async def _send_all(self, client: Client) -> None:
        first = await self._queue.get()
        if first is None:
            return
        self.topic = first[0].topic
        batch, id_ = self._batch, self._batch.transactional_id(self._number)
        async with client.producer(
            transactional_id=id_,
            transaction_timeout_ms=self._options.transaction_timeout_ms,
            linger_ms=0,
            acks="all",
        ) as producer:
            # InitProducerId has ended all earlier transactions of this id, so the offset is final.
            stored = stored_batch(await client.committed_offsets(id_))
            if action_of(stored, batch) is TaskAction.WRITE:
                await self._write(producer, first, id_)
            else:
                assert stored is not None, "it has the batch id"
                await self._compare(stored)

    async def _write(
        self, producer: Producer, first: Sequence[EncodedBatch], group_id: str
    ) -> None:
        async with producer.transaction() as transaction:
            await self._send_batches(producer, first)
            its = CommittedOffset(self._batch.batch_id, -1, str(self._written))
            await transaction.commit_offsets({(self.topic, 0): its}, group_id=group_id)
            self.transaction = await transaction.leave_open()

    async def _compare(self, stored: StoredBatch) -> None:
        """Drops the batches, whose rows are committed already, and compares their checksum."""
        self._queue_slots.release()
        while await self._queue.get() is not None:
            self._queue_slots.release()
        if str(self._written) != stored.metadata:
            raise ExactlyOnceError(
                f"{self._batch} differs from its first attempt: for task {self._number}, the rows "
                f"that are committed have {stored.metadata!r}, and those of the replay have "
                f"{str(self._written)!r}. Start the query with the plan of its first attempt, "
                "without columns that depend on the time or on chance, or set another "
                "transactionalIdPrefix, which writes the whole micro-batch again"
            )
