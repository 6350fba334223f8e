"""Tests records read by KIP-848 groups on real brokers, also together with other clients."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto import Client, KprotoError
from kproto.client.groups.group_protocol import GroupProtocol
from kproto.client.groups.protocol_selection import GroupMember
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
)
from tests.kafka.consumer_members import NEWEST, Group, failed
from tests.kafka.members_of_groups import all_of, until
from tools.kafka import KafkaNode

pytestmark = pytest.mark.slow


# Records


@pytest.mark.parametrize(
    "protocol", ["auto", pytest.param("consumer", marks=pytest.mark.exhaustive)]
)
async def test_each_record_is_read_once(node848: KafkaNode, protocol: Any) -> None:
    """Three members read 400 records; one leaves after 100 records, another after 200 records.

    The counts are of the records that all members together have read.
    """
    async with Client(node848.bootstrap) as client:
        topic = f"group-{uuid.uuid4().hex}"
        await client.create_topics(kproto.NewTopic(topic, partitions=3))
        async with client.producer() as producer:
            values = [kproto.ProducerRecord(b"%d" % at, partition=at % 3) for at in range(400)]
            await producer.send_many(topic, values)
        seen: list[tuple[int, int]] = []
        all_seen = asyncio.Event()

        async def read(until: int) -> None:
            async with client.consumer(topic, group=topic, group_protocol=protocol) as consumer:
                async for record in consumer:
                    seen.append((record.partition, record.offset))
                    await asyncio.sleep(0.005)
                    if len(seen) == 400:
                        all_seen.set()
                    if len(seen) >= until:
                        break

        tasks = [asyncio.create_task(read(count)) for count in (400, 100, 200)]
        await all_seen.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for partition in range(3):
            offsets = [offset for its, offset in seen if its == partition]
            assert offsets == list(range(len(offsets)))
        assert len(seen) == 400


async def test_commit_of_a_removed_member_fails(node848: KafkaNode) -> None:
    async with Client(node848.bootstrap) as client:
        topic = f"group-{uuid.uuid4().hex}"
        await client.create_topics(kproto.NewTopic(topic))
        async with client.producer() as producer:
            await producer.send(topic, b"one")
        async with client.consumer(
            topic, group=topic, group_protocol="consumer", auto_commit=False
        ) as consumer:
            record = await anext(aiter(consumer))
            member = consumer._member
            assert isinstance(member, GroupMember)
            assert member.identity is not None
            removal = ConsumerGroupHeartbeatRequest(
                group_id=topic, member_id=member.identity.member_id, member_epoch=-1
            )
            await client.request(removal)
            with pytest.raises(kproto.CommitFailedError, match="not assigned") as raised:
                await consumer.commit(record)
            assert isinstance(raised.value, KprotoError)
            assert (await anext(aiter(consumer))).value == b"one"


@pytest.mark.parametrize(
    "start", ["earliest", pytest.param("latest", marks=pytest.mark.exhaustive)]
)
async def test_recreated_topic_is_read_from_its_start(node848: KafkaNode, start: Any) -> None:
    settings = kproto.ClientSettings(metadata_max_age_ms=500, retry_backoff_max_ms=200)
    async with (
        Client(node848.bootstrap, settings) as client,
        Client(node848.bootstrap) as other,
    ):
        topic = f"group-{uuid.uuid4().hex}"
        await other.create_topics(kproto.NewTopic(topic))
        async with client.consumer(
            topic, group=topic, group_protocol="consumer", start=start
        ) as consumer:
            records = aiter(consumer)
            await until(lambda: consumer.assignment)
            assert await consumer.position((topic, 0)) == 0
            async with other.producer() as producer:
                await producer.send_many(topic, [b"old"] * 5)
            for _ in range(5):
                assert (await anext(records)).value == b"old"
            next_record = asyncio.ensure_future(anext(records))
            await other.delete_topics(topic)
            await until(lambda: not consumer.assignment)
            await other.create_topics(kproto.NewTopic(topic))
            async with other.producer() as producer:
                await producer.send_many(topic, [b"new-%d" % at for at in range(3)])
            record = await next_record
            assert (record.value, record.offset) == (b"new-0", 0)
            assert [(await anext(records)).value for _ in range(2)] == [b"new-1", b"new-2"]


# Groups with other clients


class Peer:
    """Runs a group member of another client library in its own process.

    `changes` lists the assignments that the member has reported.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.changes: list[list[int]] = []
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            what, *rest = json.loads(line)
            if what == "assigned":
                self.changes.append(rest[0])

    async def end(self) -> None:
        """Leaves the group and ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._listening


@asynccontextmanager
async def peer(python: Path, name: str, *arguments: str) -> AsyncIterator[Peer]:
    script = Path(__file__).parents[1] / "interop" / "peer_scripts" / f"grouped_{name}.py"
    process = await asyncio.create_subprocess_exec(
        python, script, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    member = Peer(process)
    try:
        yield member
    finally:
        await member.end()


@pytest.mark.peers
@pytest.mark.parametrize("name", ["aiokafka", "confluent_kafka"])
async def test_group_of_another_client_is_converted(
    node848: KafkaNode, peers_python: Path, name: str
) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        async with peer(peers_python, name, node848.bootstrap, topic, group.id) as other:
            await until(lambda: other.changes and len(other.changes[-1]) == 4)
            # The peer uses roundrobin, which kproto's members lack; the group stays classic.
            _, its = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
            assert "no assignor in common" in await failed(its)
            _, newer = await group.member(topic)
            await until(lambda: len(newer.partitions) == 2)
            members = (await group.described()).members
            assert len(members) == 2
            await until(lambda: len(other.changes[-1]) == 2)
        await until(lambda: newer.partitions == all_of(topic, 4))


@pytest.mark.exhaustive
@pytest.mark.peers
async def test_partitions_are_shared_with_librdkafka(
    node848: KafkaNode, peers_python: Path
) -> None:
    """librdkafka supports KIP-848 only from Kafka 4 on."""
    if node848.version != NEWEST:
        return
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        arguments = (node848.bootstrap, topic, group.id)
        async with peer(peers_python, "consumer_protocol", *arguments) as other:
            await until(lambda: other.changes)
            member, its = await group.member(topic, group_protocol="auto")
            await until(lambda: len(its.partitions) == 2)
            assert member.protocol is GroupProtocol.CONSUMER
            await member.leave(True)
            _, again = await group.member(topic)
            await until(lambda: len(again.partitions) == 2)
        await until(lambda: again.partitions == all_of(topic, 4))
