"""Fetch sessions of the consumer on real brokers (KIP-227), and on the embedded one alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import kproto
from kproto.client.fetch.fetch_requests import closing_request, fetch_request
from kproto.client.fetch.fetch_session import SessionFetch
from kproto.messages import FetchRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.protocol.error_codes import code_of
from tests.support.leaders import leader_of

PARTITIONS = 4


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[SessionFetch]:
    """What each fetch says of its session."""
    seen: list[SessionFetch] = []

    def noting(asked: SessionFetch, **others: int) -> FetchRequest:
        seen.append(asked)
        return fetch_request(asked, **others)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr("kproto.client.fetch.fetcher.fetch_request", noting)
    return seen


async def until(condition: object, limit_s: float = 30) -> None:
    assert callable(condition)
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - no event of this loop's
            await asyncio.sleep(0.01)


async def send(client: kproto.Client, topic: str, value: bytes) -> None:
    async with client.producer() as producer:
        for partition in range(PARTITIONS):
            await producer.send(topic, value, partition=partition)


@pytest.fixture
async def wide(client: kproto.Client, topic: str) -> AsyncIterator[str]:
    name = f"{topic}-wide"
    await client.create_topics(kproto.NewTopic(name, PARTITIONS, 1))
    yield name
    await client.delete_topics(name)


async def test_an_idle_fetch_names_no_partition(
    client: kproto.Client, wide: str, asked: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=50) as consumer:
        records = aiter(consumer)
        assert {(await anext(records)).value for _ in range(PARTITIONS)} == {b"first"}
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: sum(not each.named and not each.is_full for each in asked) > 3)
        await send(client, wide, b"second")
        found = [await waiting, *[await anext(records) for _ in range(PARTITIONS - 1)]]
        assert {(record.partition, record.value) for record in found} == {
            (partition, b"second") for partition in range(PARTITIONS)
        }
    assert sum(each.is_full for each in asked) == 1
    assert {each.session_id for each in asked[1:]} == {asked[1].session_id} != {0}


async def test_a_session_that_is_closed_behind_its_back(
    client: kproto.Client, wide: str, asked: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=50) as consumer:
        records = aiter(consumer)
        for _ in range(PARTITIONS):
            await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: len(asked) > 4)
        await client.request(closing_request(asked[-1].session_id), broker=_only(client))
        count = len(asked)
        await until(lambda: len(asked) > count + 3)
        await send(client, wide, b"second")
        values = [(await waiting).value]
        values += [(await anext(records)).value for _ in range(PARTITIONS - 1)]
    assert values == [b"second"] * PARTITIONS
    assert sum(each.is_full for each in asked) == 2
    assert len({each.session_id for each in asked if each.session_id}) == 2


async def test_closing_a_consumer_closes_its_session(
    client: kproto.Client, wide: str, asked: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=20_000) as consumer:
        records = aiter(consumer)
        for _ in range(PARTITIONS):
            await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: len(asked) > 1)
        await asyncio.sleep(0.2)
        begun = asyncio.get_running_loop().time()
        waiting.cancel()
        await consumer.close()
        assert asyncio.get_running_loop().time() - begun < 10  # and not what the fetch may wait
    fetch = FetchRequest(
        session_id=asked[-1].session_id,
        session_epoch=asked[-1].epoch + 1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
    )
    answer = await client.request(fetch, broker=_only(client))
    assert answer.error_code == code_of("FETCH_SESSION_ID_NOT_FOUND")


async def test_who_read_a_later_epoch_than_the_leader_knows_is_out_of_range(
    client: kproto.Client, topic: str
) -> None:
    """So the reader looks for its position anew: nobody can tell where the log diverges."""
    async with client.producer() as producer:
        for number in range(3):
            await producer.send(topic, b"%d" % number, partition=0)
    info = client.cluster.topics[topic]
    wanted = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1000)
    wanted.last_fetched_epoch = info.partitions[0].leader_epoch + 5
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000)
    request.topics = [FetchTopic(topic=topic, topic_id=info.topic_id, partitions=[wanted])]
    leader = await leader_of(client, topic, 0)
    answer = await client.request(request, broker=leader)
    (part,) = answer.responses[0].partitions
    assert part.error_code == code_of("OFFSET_OUT_OF_RANGE")


def _only(client: kproto.Client) -> int:
    (node,) = client.cluster.brokers
    return node
