"""Tests exactly-once under a thousand seeded schedules of faults, in virtual time.

The schedules mix lost and late requests, lost responses, error codes, moving leaders and
coordinators, restarted brokers, zombies, transaction timeouts, failures, cancellations and
rebalances. The oracle compares the outcomes that the producers reported with the visible records.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest

from kproto import Client, TransactionAbortedError
from kproto.broker import Cluster
from kproto.messages import DescribeProducersRequest, ListTransactionsRequest
from kproto.messages.describe_producers_request import TopicRequest as DescribeProducersTopic
from tests.support.selection import seeds
from tests.support.virtual_time import LoopClock, run_in_virtual_time
from tests.unit.client.producer.transactions.fault_members import run_members
from tests.unit.client.producer.transactions.fault_schedule import (
    INPUTS,
    PARTITIONS,
    SETTINGS,
    Report,
    Schedule,
)

#: Longer than each transaction timeout of a schedule.
LONGEST_TIMEOUT_S = 11.0

#: The longest time of a schedule, in seconds of its loop.
LONGEST_S = 300.0

#: The end of each partition of `in`.
ENDS = dict.fromkeys(range(PARTITIONS), INPUTS)


async def read(client: Client, topic: str, *, committed: bool = True) -> dict[int, list[bytes]]:
    consumer = client.consumer(topic, stop_at_end=True, read_committed=committed)
    found: dict[int, list[bytes]] = defaultdict(list)
    async for record in consumer:
        found[record.partition].append(record.value or b"")
    return found


async def committed_offsets(client: Client) -> dict[int, int]:
    partitions = [("in", partition) for partition in range(PARTITIONS)]
    async with client.consumer(partitions, group="g", auto_commit=False) as consumer:
        found = await consumer.committed(*partitions)
        return {at: 0 if its is None else its.offset for (_, at), its in found.items()}


async def check(client: Client, report: Report) -> None:
    """Checks each transaction against the visible records, and the inputs against the offsets."""
    visible = {topic: await read(client, topic) for topic in ("out", "t")}
    by_label: dict[str, dict[int, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for found in visible.values():
        for partition, values in found.items():
            for value in values:
                by_label[value.split()[0].decode()][partition].append(value)
    for topic, found in visible.items():
        for partition, values in found.items():
            check_order(topic, partition, values)
    for attempt in report.attempts:
        found = dict(by_label.pop(attempt.label, {}))
        sent = {partition: values for partition, values in attempt.values.items() if values}
        if attempt.outcome == "committed":
            assert found == sent, attempt
        elif attempt.outcome == "aborted":
            assert not found, attempt
        else:
            assert found in ({}, sent), (found, attempt)
    assert not by_label
    offsets = await committed_offsets(client)
    for partition in range(PARTITIONS):
        inputs = [int(value.split()[-1]) for value in visible["out"][partition]]
        assert inputs == list(range(offsets[partition])), (partition, offsets, inputs)


def check_order(topic: str, partition: int, values: list[bytes]) -> None:
    """Checks that the transactions of each member are in the order of their commits."""
    last: dict[bytes, int] = {}
    for value in values:
        member, _, number = value.split()[0].partition(b".")
        assert int(number) >= last.get(member, 0), (topic, partition, values)
        last[member] = int(number)


async def check_ended(client: Client, report: Report) -> None:
    """Checks that brokers end open transactions, and that each transactional id is usable again."""
    await asyncio.sleep(LONGEST_TIMEOUT_S)
    await check_states(client)
    for transactional_id in sorted(report.transactional_ids):
        async with (
            client.producer(transactional_id=transactional_id) as producer,
            producer.transaction(),
        ):
            await producer.send("end", transactional_id.encode())
    await check_states(client)


async def check_states(client: Client) -> None:
    """Checks that no transaction is open: neither at a coordinator, nor in a log."""
    response = await client.request(ListTransactionsRequest())
    states = {each.transaction_state for each in response.transaction_states}
    assert states <= {"Empty", "CompleteCommit", "CompleteAbort"}, states
    partitions = [
        DescribeProducersTopic(name=topic, partition_indexes=list(range(PARTITIONS)))
        for topic in ("out", "t")
    ]
    found = await client.request(DescribeProducersRequest(topics=partitions))
    for topic in found.topics:
        for partition in topic.partitions:
            opened = [each.current_txn_start_offset for each in partition.active_producers]
            assert set(opened) <= {-1}, (topic.name, partition)


async def drain(client: Client, schedule: Schedule) -> None:
    """Processes the rest of the inputs without faults."""
    async with (
        client.producer(transactional_id="rest") as producer,
        client.consumer(
            "in",
            group="g",
            group_protocol=schedule.protocol,
            read_committed=True,
            auto_commit=False,
        ) as consumer,
    ):
        while await committed_offsets(client) != ENDS:
            polled = await consumer.poll(timeout_ms=1_000)
            try:
                async with producer.transaction() as transaction:
                    for (_, partition), records in polled.items():
                        for record in records:
                            value = b"rest 0 0 %d" % record.offset
                            await producer.enqueue("out", value, partition=partition)
                    await transaction.commit_offsets(consumer)
            except TransactionAbortedError:  # members of the schedule are still leaving
                await consumer.seek_to_committed()


async def run(seed: int) -> Report:
    random.seed(seed)  # of the jitter in backoffs
    schedule = Schedule(seed)
    cluster = Cluster(3, settings=schedule.broker_settings(), clock=LoopClock())
    async with cluster, Client(cluster.bootstrap, SETTINGS, clock=LoopClock()) as client:
        for topic in ("in", "out", "t", "end"):
            cluster.create_topic(topic, PARTITIONS)
        async with client.producer() as plain:
            for partition in range(PARTITIONS):
                for number in range(INPUTS):
                    await plain.enqueue("in", b"%d" % number, partition=partition)
        report = await run_members(schedule, cluster)
        await check_ended(client, report)
        await check(client, report)
        await drain(client, schedule)
        found = await read(client, "out")
        for partition in range(PARTITIONS):
            inputs = [int(value.split()[-1]) for value in found[partition]]
            assert inputs == list(range(INPUTS))
    return report


@pytest.mark.parametrize("seed", seeds(6, 180, 1_000, quick=2))
def test_log_and_offsets_have_exactly_the_committed_transactions(seed: int) -> None:
    report = run_in_virtual_time(asyncio.wait_for(run(seed), LONGEST_S))
    assert report.attempts
