"""Tests the exactly-once sink without Spark: tasks, the driver's commit, replays and refusals."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.option_table import WriteOptions, parse_write_options
from kproto_pipeline.spark.sink.batch_commit import abort_transactions, commit_micro_batch
from kproto_pipeline.spark.sink.errors import ExactlyOnceError, RowError
from kproto_pipeline.spark.sink.micro_batch import (
    MicroBatch,
    StoredBatch,
    TaskAction,
    WrittenRows,
    action_of,
    stored_batch,
)
from kproto_pipeline.spark.sink.row_checksum import RowChecksum
from kproto_pipeline.spark.sink.sink_rows import sink_rows
from kproto_pipeline.spark.sink.task_commit_message import TaskCommitMessage
from kproto_pipeline.spark.sink.task_writer import write_rows
from kproto_pipeline.spark.sink.transactional_task_producer import TransactionalTaskProducer

import kproto
from kproto.broker import Broker, BrokerSettings
from kproto.messages import DescribeTransactionsRequest
from tests.support.examples import examples
from tests.unit.pipeline.spark.sink.test_task_writer import SCHEMA, batches_of, row

Rows = list[dict[str, Any]]

QUERY = "q"


class Query:
    """The tasks and the driver of a query that writes to the topic `t` of an embedded broker."""

    def __init__(self, broker: Broker, client: kproto.Client, **others: str) -> None:
        self.broker = broker
        self.client = client
        self.options: WriteOptions = parse_write_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "exactlyOnce": "true", **others}
        )

    def batch(self, batch_id: int) -> MicroBatch:
        return MicroBatch(self.options.transactional_id_prefix, QUERY, batch_id)

    async def task(self, batch_id: int, task: int, rows: Rows) -> TaskCommitMessage:
        """Runs a task in a thread without an event loop, as Spark does."""

        def run() -> TaskCommitMessage:
            producer = TransactionalTaskProducer(self.options, self.batch(batch_id), task)
            count = write_rows(self.options, batches_of(rows, 3), producer)
            return TaskCommitMessage(
                count, QUERY, str(batch_id), task, producer.topic, producer.transaction
            )

        return await asyncio.to_thread(run)

    async def tasks(self, batch_id: int, *tasks: Rows) -> list[TaskCommitMessage]:
        return [await self.task(batch_id, task, rows) for task, rows in enumerate(tasks)]

    async def commit(self, batch_id: int, messages: Sequence[TaskCommitMessage]) -> None:
        await commit_micro_batch(self.client, self.batch(batch_id), messages)

    async def run(self, batch_id: int, *tasks: Rows) -> None:
        await self.commit(batch_id, await self.tasks(batch_id, *tasks))

    def committed(self) -> list[int]:
        """Returns the committed numbers of all partitions, in order of partition and offset."""
        return [
            int(record.value or b"")
            for partition in range(2)
            for record in self.broker.records("t", partition, read_committed=True)
        ]


def make_invalid(message: TaskCommitMessage) -> None:
    """Makes the coordinator refuse to commit the transaction of a task."""
    if message.transaction is not None:
        epoch = message.transaction.epoch + 100
        message.transaction = message.transaction._replace(epoch=epoch)


def rows(*numbers: int, partition: int | None = 0) -> Rows:
    return [row(number, partition) for number in numbers]


@pytest.fixture(params=[0, 2])
async def query(request: pytest.FixtureRequest) -> AsyncIterator[Query]:
    async with (
        Broker(BrokerSettings(transaction_version=request.param)) as broker,
        kproto.Client(broker.bootstrap) as client,
    ):
        broker.create_topic("t", partitions=2)
        yield Query(broker, client)


async def test_rows_are_invisible_until_the_driver_commits(query: Query) -> None:
    messages = await query.tasks(0, rows(1, 2), rows(3, partition=1), [])
    assert [each.rows for each in messages] == [2, 1, 0]
    assert messages[2].transaction is None
    assert query.committed() == []
    await query.commit(0, messages)
    assert query.committed() == [1, 2, 3]
    await query.run(1, [], rows(4), rows(5, partition=1))
    assert query.committed() == [1, 2, 4, 3, 5]
    group = await query.client.committed_offsets("kproto-q")
    assert group == {("t", 0): kproto.CommittedOffset(1, -1, "tasks=3")}


async def test_replay_writes_only_what_is_not_committed(query: Query) -> None:
    messages = await query.tasks(0, rows(1, 2), rows(3, 4, partition=1))
    make_invalid(messages[1])
    with pytest.raises(ExactlyOnceError, match="transactions of tasks 1 are not committed"):
        await query.commit(0, messages)
    assert query.committed() == [1, 2]
    replay = await query.tasks(0, rows(2, 1), rows(3, 4, partition=1))  # rows in another order
    assert [each.transaction is None for each in replay] == [True, False]
    await query.commit(0, replay)
    assert query.committed() == [1, 2, 3, 4]
    await query.commit(0, await query.tasks(0, rows(1, 2), rows(4, 3, partition=1)))
    assert query.committed() == [1, 2, 3, 4]


async def test_replay_with_other_rows_is_refused(query: Query) -> None:
    await query.run(3, rows(1, 2), rows(3, partition=1))
    for other in (rows(1), rows(1, 3), rows(1, 2, 2), rows(1, 2, partition=1)):
        with pytest.raises(ExactlyOnceError, match=r"micro-batch 3 of query q differs .*'rows=2"):
            await query.task(3, 0, other)
    assert query.committed() == [1, 2, 3]


async def test_replay_with_fewer_tasks_is_refused(query: Query) -> None:
    messages = await query.tasks(0, rows(1, partition=1), rows(2), rows(3))
    make_invalid(messages[0])
    with pytest.raises(ExactlyOnceError, match="tasks 0"):
        await query.commit(0, messages)
    assert query.committed() == [2, 3]
    for replay in ([rows(1, 2, 3)], [rows(1, 2, 3), [], []], [rows(1, 3), rows(2)]):
        with pytest.raises(ExactlyOnceError, match=r"rows of task [12] are committed"):
            await query.run(0, *replay)
    assert query.committed() == [2, 3]


async def test_other_plan_is_accepted_if_nothing_is_committed(query: Query) -> None:
    """The open transactions of tasks that the replay lacks are aborted."""
    await query.client.commit_offsets(
        "kproto-q", {("t", 0): kproto.CommittedOffset(0, -1, "tasks=3")}
    )  # the driver was killed after it had stored the batch id
    await query.tasks(0, rows(1), rows(2), rows(3))
    await query.run(0, rows(1, 2, 3))
    assert query.committed() == [1, 2, 3]
    request = DescribeTransactionsRequest(
        transactional_ids=[query.batch(0).transactional_id(task) for task in range(3)]
    )
    states = (await query.client.request(request)).transaction_states
    assert [each.transaction_state for each in states] == [
        "CompleteCommit",
        "Empty",
        "Empty",
    ]


@pytest.mark.parametrize("has_run_id", [False, True])
async def test_transactions_of_a_killed_run_are_aborted(query: Query, has_run_id: bool) -> None:
    """The killed run had more tasks, and its driver had stored nothing."""
    run_id = uuid.uuid4().hex if has_run_id else None
    await query.tasks(0, rows(1), rows(2, partition=1), rows(3))
    other = Query(query.broker, query.client, transactionalIdPrefix="kproto-q")  # a similar id
    open_elsewhere = await other.tasks(0, rows(9, partition=1))
    messages = await query.tasks(0, rows(1, 3), [])
    for each in messages:
        each.run_id = run_id
    await query.commit(0, messages)
    assert query.committed() == [1, 3]
    await other.commit(0, open_elsewhere)
    assert query.committed() == [1, 3, 9]
    messages = await query.tasks(1, rows(4))
    for each in messages:
        each.run_id = run_id
    await query.commit(1, messages)
    assert query.committed() == [1, 3, 4, 9]


async def test_older_checkpoint_is_refused(query: Query) -> None:
    await query.run(4, rows(1))
    with pytest.raises(ExactlyOnceError, match="checkpoint is older than the topic"):
        await query.task(3, 0, rows(1))
    messages = await query.tasks(3, [], rows(2))
    with pytest.raises(ExactlyOnceError, match="checkpoint is older than the topic"):
        await query.commit(3, messages)
    await abort_transactions(query.client, [None, *messages])
    assert query.committed() == [1]
    await query.run(5, rows(3), rows(4))
    assert query.committed() == [1, 3, 4]


async def test_failed_micro_batch_is_aborted(query: Query) -> None:
    messages = await query.tasks(0, rows(1), rows(2))
    await abort_transactions(query.client, [*messages, None])
    assert query.committed() == []
    async with query.client.producer() as producer:
        await producer.send("t", b"5", partition=0)
    assert query.committed() == [5]  # no open transaction holds it back


async def test_abort_after_the_commit_has_no_effect(query: Query) -> None:
    messages = await query.tasks(0, rows(1), rows(2))
    await query.commit(0, messages)
    await abort_transactions(query.client, messages)
    assert query.committed() == [1, 2]


async def test_second_attempt_of_a_task_fences_the_first(query: Query) -> None:
    first = await query.task(0, 0, rows(1))
    second = await query.task(0, 0, rows(1))
    with pytest.raises(ExactlyOnceError, match=r"(?s)not committed.*spark\.speculation"):
        await query.commit(0, [first])
    assert query.committed() == []
    await query.commit(0, [second])
    assert query.committed() == [1]


async def test_refused_row_aborts_the_transaction(query: Query) -> None:
    with pytest.raises(RowError, match="row 1 of this task"):
        await query.task(0, 0, [*rows(1), row(2, 9)])
    with pytest.raises(RowError, match="MESSAGE_TOO_LARGE"):
        await query.task(0, 0, [{**row(1, 0), "value": bytes(2_000_000)}])
    assert query.committed() == []
    await query.run(0, rows(1, 2))
    assert query.committed() == [1, 2]


async def test_missing_batch_id_is_logged(query: Query, caplog: pytest.LogCaptureFixture) -> None:
    def warnings() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "kproto.pipeline"]

    await query.run(0, rows(1))
    await query.run(2, rows(2))
    assert not warnings()
    async with kproto.Client(query.broker.bootstrap) as client:
        other = Query(query.broker, client, transactionalIdPrefix="other")
        await other.run(2, rows(3))
    (message,) = warnings()
    assert "group other-q has no batch id" in message
    assert "offsets.retention.minutes" in message


@pytest.mark.parametrize("seed", range(examples(12)))
async def test_random_faults_lose_and_double_nothing(seed: int) -> None:
    """Kills tasks and the driver at random points; Spark then repeats the last micro-batch."""
    chance = random.Random(seed)
    settings = BrokerSettings(transaction_version=chance.choice([0, 2]))
    async with Broker(settings) as broker, kproto.Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=2)
        query = Query(broker, client)
        number, expected = 0, []
        for batch_id in range(6):
            tasks = []
            for _ in range(chance.randint(1, 4)):
                size = chance.randint(0, 8)
                tasks.append([row(number + at, chance.choice([0, 1, None])) for at in range(size)])
                number += size
            expected += [int(each["value"]) for its in tasks for each in its]
            while not await attempt(query, batch_id, tasks, chance):
                assert len(query.committed()) <= len(expected)
        assert sorted(query.committed()) == sorted(expected)


async def attempt(query: Query, batch_id: int, tasks: list[Rows], chance: random.Random) -> bool:
    """Runs a micro-batch once; returns True if the driver has committed it."""
    messages = []
    for task, its in enumerate(tasks):
        if chance.random() < 0.1:
            return False  # the driver is killed, and the transactions stay open
        if chance.random() < 0.2:
            await query.task(batch_id, task, its)  # the task is repeated
        messages.append(await query.task(batch_id, task, chance.sample(its, len(its))))
    if chance.random() < 0.1:
        await abort_transactions(query.client, messages)
        return False
    if chance.random() < 0.4:  # the driver is killed after some of the transactions
        ended = chance.randint(0, len(messages))
        lost = [each for each in messages if chance.random() < 0.5][ended:]
        for each in lost:
            make_invalid(each)
        try:
            await query.commit(batch_id, messages)
        except ExactlyOnceError:
            return False
        return not lost
    await query.commit(batch_id, messages)
    return True


# Plain data


def test_actions() -> None:
    batch = MicroBatch("p", "q", 5)
    assert batch.transactional_id(3) == "p-q-3"
    assert batch.group_id == "p-q"
    assert batch.task_of("p-q-12") == 12
    assert batch.task_of("p-q-") is batch.task_of("p-q-1-2") is batch.task_of("p-qq-1") is None
    assert action_of(None, batch) is TaskAction.WRITE
    assert action_of(StoredBatch(4, ""), batch) is TaskAction.WRITE
    assert action_of(StoredBatch(5, ""), batch) is TaskAction.COMPARE
    with pytest.raises(ExactlyOnceError, match="transactionalIdPrefix"):
        action_of(StoredBatch(6, ""), batch)


def test_stored_batch_is_the_latest_of_all_topics() -> None:
    assert stored_batch({}) is None
    found = stored_batch(
        {
            ("a", 0): kproto.CommittedOffset(3, -1, "tasks=2"),
            ("b", 0): kproto.CommittedOffset(7, -1, "tasks=4"),
            ("c", 0): kproto.CommittedOffset(5, -1, "tasks=9"),
        }
    )
    assert found == StoredBatch(7, "tasks=4")
    assert found.tasks == 4
    assert StoredBatch(1, "rows=3").tasks == 0
    assert StoredBatch(1, "tasks=x").tasks == 0


def checksum(*batches: pa.RecordBatch) -> WrittenRows:
    options = parse_write_options({"kafka.bootstrap.servers": "h:1"})
    found = RowChecksum()
    for batch in batches:
        found.add(sink_rows(batch, options, 0))
    return found.written


def test_checksum_depends_neither_on_order_nor_on_batches() -> None:
    chance = random.Random(1)
    table = [
        {
            "key": chance.choice([None, b"", b"k", b"key"]),
            "value": chance.choice([None, b"", chance.randbytes(chance.randint(0, 40))]),
            "headers": chance.choice([None, [], [{"key": "n", "value": None}]]),
            "topic": chance.choice(["t", "u"]),
            "partition": chance.choice([None, 0, 7]),
        }
        for _ in range(200)
    ]
    first = checksum(*batches_of(table, 7))
    assert first.rows == 200
    for size in (1, 50, 200):
        chance.shuffle(table)
        assert checksum(*batches_of(table, size)) == first
    sliced = pa.RecordBatch.from_pylist([*table, *table], schema=SCHEMA)
    assert checksum(sliced.slice(50, 200)) == first


def test_checksum_depends_on_every_column() -> None:
    base = row(1, 0)
    others = [
        {**base, "key": None},
        {**base, "key": b""},
        {**base, "key": b"key1", "value": b""},  # the same bytes in other columns
        {**base, "value": None},
        {**base, "value": b"2"},
        {**base, "headers": []},
        {**base, "headers": [{"key": "n", "value": None}]},
        {**base, "topic": "u"},
        {**base, "partition": None},
        {**base, "partition": 1},
    ]
    found = {checksum(*batches_of([each])) for each in (base, *others)}
    assert len(found) == len(others) + 1
    assert str(WrittenRows(2, 255)) == "rows=2 checksum=00000000000000ff"


def test_options() -> None:
    given = {"kafka.bootstrap.servers": "h:1"}
    options = parse_write_options(given)
    assert not options.exactly_once
    assert (options.transactional_id_prefix, options.transaction_timeout_ms) == ("kproto", 900_000)
    options = parse_write_options(
        {
            **given,
            "exactlyonce": "true",
            "transactionalidprefix": "sales",
            "kafka.transaction.timeout.ms": "60000",
        }
    )
    assert options.exactly_once
    assert (options.transactional_id_prefix, options.transaction_timeout_ms) == ("sales", 60_000)
    with pytest.raises(OptionError, match="set exactlyOnce"):
        parse_write_options({**given, "kafka.transactional.id": "x"})
