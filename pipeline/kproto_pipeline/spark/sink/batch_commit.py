"""The driver's part of the exactly-once sink: commits or aborts the transactions of all tasks."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from kproto import CommittedOffset
from kproto.messages import ListTransactionsRequest
from kproto.wire.errors import KprotoError

from .errors import ExactlyOnceError
from .micro_batch import MicroBatch, StoredBatch, TaskAction, action_of, stored_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto import Client, OpenTransaction

    from .task_commit_message import TaskCommitMessage

__all__ = ["abort_transactions", "commit_micro_batch"]

logger = logging.getLogger("kproto.pipeline")

#: The maximum number of transactions that the driver ends at the same time.
_MAX_CONCURRENT: Final = 100

#: The latest runs whose first micro-batch this process has committed.
_started_runs: Final[deque[str]] = deque(maxlen=100)


async def commit_micro_batch(
    client: Client, batch: MicroBatch, messages: Sequence[TaskCommitMessage]
) -> None:
    """Commits the transactions of all tasks of a micro-batch; `messages` has one per task.

    Raises:
        ExactlyOnceError: the micro-batch differs from its first attempt, or the checkpoint is too
            old; no transaction of this attempt is committed.
        KprotoError: a transaction is not committed; a replay of the micro-batch completes it.
    """
    written = [each for each in messages if each.rows]
    if not written:
        return
    tasks = {each.task for each in written}
    run_id = written[0].run_id
    if run_id is None or run_id not in _started_runs:
        await _abort_left_open(client, batch, tasks)
        if run_id is not None:
            _started_runs.append(run_id)
    await _store(client, batch, tasks, len(messages), written[0].topic)
    await _end_all(client, batch, written)


async def _abort_left_open(client: Client, batch: MicroBatch, written: set[int]) -> None:
    """Aborts the transactions that a killed run of the query has left open.

    The tasks of this run have aborted those with their own transactional ids already. The others
    belong to tasks that this run lacks. A broker that does not answer is left out; brokers before
    Kafka 3.0 do not list transactions.
    """
    request = ListTransactionsRequest(state_filters=["Ongoing"])
    for answer in await client.request_by_broker(request):
        if answer.response is None:
            logger.info("%s: a broker did not list its transactions: %s", batch, answer.error)
            continue
        for each in answer.response.transaction_states:
            task = batch.task_of(each.transactional_id)
            if task is not None and task not in written:
                await _abort_open(client, each.transactional_id)


async def _abort_open(client: Client, transactional_id: str) -> None:
    """Aborts an open transaction by InitProducerId, which also fences its producer."""
    async with client.producer(transactional_id=transactional_id):
        pass


async def _store(
    client: Client, batch: MicroBatch, written: set[int], tasks: int, topic: str
) -> None:
    """Stores the batch id and the number of tasks, before the first transaction is committed."""
    stored = stored_batch(await client.committed_offsets(batch.group_id))
    if stored is None and batch.batch_id:
        logger.warning(
            "%s: group %s has no batch id. This is right for the first rows that the query writes "
            "exactly once. Otherwise the offsets have expired (offsets.retention.minutes), and if "
            "this micro-batch is a replay, its rows may be written twice",
            batch,
            batch.group_id,
        )
    if action_of(stored, batch) is TaskAction.COMPARE:
        assert stored is not None, "it has the batch id"
        absent = set(range(max(stored.tasks, tasks))) - written
        await _check_not_committed(client, batch, absent)
        if stored.tasks >= tasks:
            return
    tp = (topic, 0)
    its = CommittedOffset(batch.batch_id, -1, StoredBatch.metadata_of(tasks))
    topic_id = (await client.topic(topic)).topic_id
    await client.commit_offsets(batch.group_id, {tp: its}, topic_ids={tp: topic_id})


async def _check_not_committed(client: Client, batch: MicroBatch, tasks: Iterable[int]) -> None:
    """Checks, in a replay, that tasks without rows have had no rows in an earlier attempt.

    Aborts open transactions of these tasks. Raises ExactlyOnceError.
    """
    for task in sorted(tasks):
        transactional_id = batch.transactional_id(task)
        await _abort_open(client, transactional_id)
        stored = stored_batch(await client.committed_offsets(transactional_id))
        if stored is not None and stored.batch_id == batch.batch_id:
            raise ExactlyOnceError(
                f"{batch} differs from its first attempt: rows of task {task} are committed, and "
                "the replay has no rows for this task. Start the query with the plan of its first "
                "attempt (the same minPartitions, for example), or set another "
                "transactionalIdPrefix, which writes the whole micro-batch again"
            )


async def _end_all(client: Client, batch: MicroBatch, written: Sequence[TaskCommitMessage]) -> None:
    """Commits the transactions; raises the first error once all have ended."""
    errors = await _end(client, _opened(written), committed=True)
    if errors:
        failed = ", ".join(str(task) for task in sorted(errors))
        first = errors[min(errors)]
        raise ExactlyOnceError(
            f"{batch}: the transactions of tasks {failed} are not committed ({first}). Start the "
            "query again: the replay of the micro-batch writes only the rows of these tasks. "
            "Brokers abort a micro-batch that takes longer than kafka.transaction.timeout.ms: "
            "raise that option, or lower maxOffsetsPerTrigger. With spark.speculation, attempts of "
            "the same task abort each other's transactions: set it to false"
        ) from first


async def abort_transactions(client: Client, messages: Sequence[TaskCommitMessage | None]) -> None:
    """Aborts the transactions that tasks have left open; logs the errors.

    A transaction that was committed stays committed.
    """
    opened = _opened([each for each in messages if each is not None])
    for task, error in (await _end(client, opened, committed=False)).items():
        logger.info("the transaction of task %d is not aborted: %s", task, error)


def _opened(messages: Iterable[TaskCommitMessage]) -> dict[int, OpenTransaction]:
    return {each.task: each.transaction for each in messages if each.transaction is not None}


async def _end(
    client: Client, opened: dict[int, OpenTransaction], *, committed: bool
) -> dict[int, KprotoError]:
    """Ends transactions by task; returns the errors by task."""
    limit = asyncio.Semaphore(_MAX_CONCURRENT)
    errors: dict[int, KprotoError] = {}

    async def end(task: int, transaction: OpenTransaction) -> None:
        async with limit:
            try:
                await client.end_transaction(transaction, committed=committed)
            except KprotoError as error:
                errors[task] = error

    await asyncio.gather(*(end(*each) for each in opened.items()))
    return errors
