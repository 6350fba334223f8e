"""Tests `Consumer.run` on real brokers: order, rebalances, retry topics and dead letters."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

import kproto
from kproto.client.commits.processed_bitmap import decode_bitmap
from tests.support.brokers import versions

pytestmark = pytest.mark.parametrize("broker_version", versions())

PARTITIONS = 3
EACH = 100
KEYS = 5


async def fill(client: kproto.Client, topic: str) -> None:
    async with client.producer() as producer:
        for partition in range(PARTITIONS):
            records = [
                kproto.ProducerRecord(
                    b"%d" % at, b"k%d" % (at % KEYS), [("at", b"%d" % at)], partition=partition
                )
                for at in range(EACH)
            ]
            await producer.send_many(topic, records)


@pytest.mark.parametrize(
    "order",
    ["key", *(pytest.param(it, marks=pytest.mark.exhaustive) for it in ("partition", "none"))],
)
async def test_each_record_is_processed_once_across_rebalances(
    bootstrap: str, topic: str, order: Any
) -> None:
    async with kproto.Client(bootstrap) as client:
        await fill(client, topic)
        handled: list[tuple[int, int]] = []
        all_done = asyncio.Event()

        async def handle(record: kproto.Record) -> None:
            await asyncio.sleep(0.003 if record.key == b"k1" else 0.001)
            handled.append((record.partition, record.offset))
            if len(handled) == PARTITIONS * EACH:
                all_done.set()

        async def member() -> None:
            async with client.consumer(topic, group=topic, heartbeat_interval_ms=100) as consumer:
                await consumer.run(handle, order=order, workers=4)

        first = asyncio.create_task(member())
        while len(handled) < 40:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0.01)
        second = asyncio.create_task(member())
        while len(handled) < 150:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0.01)
        first.cancel()
        await all_done.wait()
        second.cancel()
        await asyncio.wait([first, second])
        assert sorted(handled) == [(p, at) for p in range(PARTITIONS) for at in range(EACH)]
        for partition in range(PARTITIONS):
            for key in range(KEYS):
                its = [at for p, at in handled if p == partition and at % KEYS == key]
                assert order == "none" or its == sorted(its)
        tps = [(topic, partition) for partition in range(PARTITIONS)]
        async with client.consumer(tps, group=topic) as consumer:
            committed = await consumer.committed(*tps)
        assert {its and its.offset for its in committed.values()} == {EACH}


async def test_failed_record_is_retried_then_dead_lettered(bootstrap: str, topic: str) -> None:
    retry, dead = f"{topic}.retry.300ms", f"{topic}.dead"
    async with kproto.Client(bootstrap) as client:
        await client.create_topics(kproto.NewTopic(retry, 1), kproto.NewTopic(dead, 1))
        await fill(client, topic)
        failed: list[str] = []
        handled = 0

        async def handle(record: kproto.Record) -> None:
            nonlocal handled
            if record.value == b"50":
                failed.append(record.topic)
                raise ValueError(f"{len(failed)}")
            handled += 1

        async with client.consumer(topic, group=topic, heartbeat_interval_ms=100) as consumer:
            running = asyncio.create_task(
                consumer.run(handle, retry_topics=[retry], dead_letter_topic=dead)
            )
            letters: list[kproto.Record] = []
            async for letter in client.consumer(dead):
                letters.append(letter)
                if len(letters) == PARTITIONS:
                    break
            running.cancel()
            await asyncio.wait([running])
        assert sorted(failed) == sorted([topic, retry] * PARTITIONS)
        assert handled == PARTITIONS * (EACH - 1)
        failures = [kproto.failure_of(letter) for letter in letters]
        assert all(letter.headers[0] == ("at", b"50") for letter in letters)
        assert sorted((its.topic, its.partition, its.offset) for its in failures if its) == [
            (topic, partition, 50) for partition in range(PARTITIONS)
        ]
        assert {its and its.attempts for its in failures} == {2}


async def test_missing_dead_letter_topic_fails_and_is_not_created(
    bootstrap: str, topic: str
) -> None:
    settings = kproto.ClientSettings(metadata_wait_ms=300)
    async with kproto.Client(bootstrap, settings) as client:

        async def handle(record: kproto.Record) -> None:
            raise AssertionError("nothing is handled")

        async with client.consumer(topic, group=topic) as consumer:
            for _ in range(2):
                with pytest.raises(kproto.ConfigurationError, match="does not exist"):
                    await consumer.run(handle, dead_letter_topic=f"{topic}.dead")


#: A program that prints each record it has processed; the handler of one record never ends.
MEMBER = """
import asyncio, sys
import kproto

async def main(bootstrap, topic, order):
    async def handle(record):
        if (record.partition, record.offset) == (1, 20):
            await asyncio.Event().wait()
        print(record.partition, record.offset, flush=True)

    async with (
        kproto.Client(bootstrap) as client,
        client.consumer(
            topic, group=topic, group_protocol="classic", session_timeout_ms=6_000
        ) as consumer,
    ):
        await consumer.run(handle, order=order)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", ["key", "none"])
async def test_records_processed_ahead_of_the_commit_are_not_redelivered(
    bootstrap: str, topic: str, order: Any
) -> None:
    tps = [(topic, partition) for partition in range(PARTITIONS)]
    stuck = {20} if order == "none" else {at for at in range(20, EACH) if at % KEYS == 20 % KEYS}
    async with kproto.Client(bootstrap) as client:
        await fill(client, topic)
        member = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEMBER, bootstrap, topic, order, stdout=asyncio.subprocess.PIPE
        )
        assert member.stdout is not None
        done = [(await member.stdout.readline()).split() for _ in range(3 * EACH - len(stuck))]
        while not await all_is_committed(client, tps, stuck):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
        member.kill()
        await member.communicate()
        assert len(done) == 3 * EACH - len(stuck)
        redelivered: list[tuple[int, int]] = []

        async def handle(record: kproto.Record) -> None:
            redelivered.append((record.partition, record.offset))
            if len(redelivered) == len(stuck) + PARTITIONS:
                raise kproto.Stop(done=True)

        async with client.producer() as producer:  # the last record of each partition
            for partition in range(PARTITIONS):
                await producer.send(topic, b"end", partition=partition)
        async with client.consumer(topic, group=topic, group_protocol="classic") as consumer:
            await consumer.run(handle, order="partition")
        assert sorted(redelivered) == sorted(
            [(1, at) for at in stuck] + [(partition, EACH) for partition in range(PARTITIONS)]
        )


async def all_is_committed(
    client: kproto.Client, tps: list[tuple[str, int]], stuck: set[int]
) -> bool:
    topic = tps[0][0]
    async with client.consumer(tps, group=topic) as consumer:
        found = await consumer.committed(*tps)
    its = found[topic, 1]
    others = [found[topic, partition] for partition in (0, 2)]
    if its is None or any(each is None or each.offset < EACH for each in others):
        return False
    incomplete = decode_bitmap(its.metadata, its.offset)
    done = {at for at in range(20, EACH) if incomplete is not None and incomplete.is_processed(at)}
    return its.offset == 20 and done == set(range(20, EACH)) - stuck
