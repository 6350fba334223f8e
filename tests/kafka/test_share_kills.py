"""Tests that a share group delivers at least once while its members are killed or stopped.

Three oracles watch the members: no record is lost, a record whose acceptance was confirmed is never
delivered again, and no delivery count exceeds the limit of the broker.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator

import pytest

import kproto
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.share_groups import SHARE_CONFIG, ShareQueue
from tools.kafka import KafkaNode
from tools.setup.javac import CompilerError
from tools.share.java import share_worker

from .members_of_groups import until
from .share_nodes import started_share_node

pytestmark = pytest.mark.exhaustive

#: Kills must not use up the deliveries of a record.
LIMIT = 10
CONFIG = {
    **SHARE_CONFIG,
    "group.share.delivery.count.limit": str(LIMIT),
    "group.share.record.lock.duration.ms": "2000",
}

RECORDS, MEMBERS, KILLS = 2_000, 3, 6


@pytest.fixture(scope="module")
def share_node() -> Iterator[KafkaNode]:
    """Yields a broker with short acquisition locks."""
    with started_share_node(CONFIG) as kafka:
        yield kafka


class Oracles:
    """The observations of all members, by partition and offset."""

    def __init__(self) -> None:
        self.got: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self.accepted: dict[tuple[int, int], float] = {}

    async def watch(self, process: Process) -> None:
        """Reads the lines of a member until it ends."""
        assert process.stdout is not None
        async for line in process.stdout:
            words = line.split()
            if len(words) < 4 or not line.endswith(b"\n"):
                continue  # the member was killed while it wrote the line
            key = int(words[1]), int(words[2])
            if words[0] == b"got":
                self.got.setdefault(key, []).append((int(words[3]), float(words[4])))
            else:
                self.accepted.setdefault(key, float(words[3]))

    def check(self) -> None:
        """Fails if a record was delivered after its acceptance, or too often.

        A member that was stopped may print a delivery late: the delivery count of a new delivery is
        above all earlier ones.
        """
        for key, deliveries in self.got.items():
            accepted_at = self.accepted.get(key, float("inf"))
            before = max((count for count, at in deliveries if at <= accepted_at), default=0)
            for count, at in deliveries:
                assert count <= LIMIT, f"{key} has the delivery count {count}"
                is_new = at > accepted_at and count > before
                assert not is_new, f"{key} was delivered after its acceptance: {deliveries}"


async def start(*command: str) -> Process:
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)


async def end(process: Process) -> None:
    """Ends the input of a member, and waits until the member has closed its consumer."""
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


async def test_records_survive_kills_and_stops_of_members(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client, partitions=3).create()
    address = share_client.cluster.brokers[min(share_client.cluster.brokers)]
    command = [sys.executable, "-m", "tools.share.member", str(address), queue.topic, queue.group]
    oracles = Oracles()
    chance = random.Random(7)
    members = [await start(*command) for _ in range(MEMBERS)]
    watches = [asyncio.create_task(oracles.watch(each)) for each in members]
    try:
        await queue.produce(0, RECORDS // 2)
        await until(lambda: len(oracles.accepted) > 50)
        for kill in range(KILLS):
            at = chance.randrange(MEMBERS)
            if kill % 3 == 2:  # longer than a lock
                members[at].send_signal(signal.SIGSTOP)
                await asyncio.sleep(2.5)
                members[at].send_signal(signal.SIGCONT)
            else:
                members[at].kill()
                members[at] = await start(*command)
                watches.append(asyncio.create_task(oracles.watch(members[at])))
            await queue.produce(RECORDS // 2 + kill * 100, 100)
            await asyncio.sleep(0.3)
        wanted = RECORDS // 2 + KILLS * 100
        async with asyncio.timeout(60):
            while await queue.lag():  # noqa: ASYNC110 - a killed member reports nothing
                await asyncio.sleep(0.2)
        await asyncio.gather(*map(end, members))
        await asyncio.gather(*watches)
    finally:
        for member in members:
            if member.returncode is None:
                member.kill()
    oracles.check()
    assert len(oracles.got) == wanted
    assert len(oracles.accepted) > wanted - KILLS * 100


async def test_group_has_members_of_java(share_client: kproto.Client) -> None:
    queue = await ShareQueue(share_client).create()
    address = share_client.cluster.brokers[min(share_client.cluster.brokers)]
    try:
        command = share_worker(str(address), queue.topic, queue.group, max_poll_records=10)
    except (*CANNOT_START, CompilerError) as error:
        not_available("Java's share consumer", error)
    java = await start(*command)
    seen: dict[int, list[int]] = {}
    by_java: set[int] = set()

    async def watch() -> None:
        assert java.stdout is not None
        async for line in java.stdout:
            value, count = map(int, line.split())
            by_java.add(value)
            seen.setdefault(value, []).append(count)

    async def read() -> None:
        async with queue.consumer(max_poll_records=10) as consumer:
            async for record in consumer:
                value = int(record.value or b"")
                seen.setdefault(value, []).append(record.delivery_count)
                if value % 50 == 7 and record.delivery_count < 3:
                    await consumer.release(record)  # to any member
                else:
                    await consumer.accept(record)
                await asyncio.sleep(0.001)

    tasks = [asyncio.create_task(watch()), asyncio.create_task(read())]
    try:
        produced = 0
        while produced < 600 or len(by_java) <= 20 or len(seen) - len(by_java) <= 20:
            await queue.produce(produced, 50)
            produced += 50
            await asyncio.sleep(0.05)
        await until(lambda: len(seen) == produced)
        await asyncio.sleep(0.5)
    finally:
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        await end(java)
        await tasks[0]
    assert by_java
    assert by_java != set(seen)
    for value, counts in seen.items():
        assert counts == sorted(counts), value
        if value % 50 != 7:
            assert counts == [1], value
