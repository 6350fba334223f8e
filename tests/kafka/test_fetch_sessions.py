"""Tests the consumer's fetch sessions (KIP-227) on real brokers and the embedded broker."""

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
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[SessionFetch]:
    """Returns a list; each later fetch of a consumer appends its fetch session fields to it."""
    seen: list[SessionFetch] = []

    def noting(fetch: SessionFetch, **others: int) -> FetchRequest:
        seen.append(fetch)
        return fetch_request(fetch, **others)  # type: ignore[arg-type]  # passed on unchanged

    monkeypatch.setattr("kproto.client.fetch.fetcher.fetch_request", noting)
    return seen


async def until(condition: object, limit_s: float = 30) -> None:
    assert callable(condition)
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - the condition has no event in this loop
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


async def test_idle_fetch_names_no_partition(
    client: kproto.Client, wide: str, fetches: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=50) as consumer:
        records = aiter(consumer)
        assert {(await anext(records)).value for _ in range(PARTITIONS)} == {b"first"}
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: sum(not each.to_send and not each.is_full for each in fetches) > 3)
        await send(client, wide, b"second")
        found = [await waiting, *[await anext(records) for _ in range(PARTITIONS - 1)]]
        assert {(record.partition, record.value) for record in found} == {
            (partition, b"second") for partition in range(PARTITIONS)
        }
    assert sum(each.is_full for each in fetches) == 1
    assert {each.session_id for each in fetches[1:]} == {fetches[1].session_id} != {0}


async def test_consumer_starts_a_new_session_after_the_broker_closed_it(
    client: kproto.Client, wide: str, fetches: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=50) as consumer:
        records = aiter(consumer)
        for _ in range(PARTITIONS):
            await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: len(fetches) > 4)
        await client.request(closing_request(fetches[-1].session_id), broker=_only(client))
        count = len(fetches)
        await until(lambda: len(fetches) > count + 3)
        await send(client, wide, b"second")
        values = [(await waiting).value]
        values += [(await anext(records)).value for _ in range(PARTITIONS - 1)]
    assert values == [b"second"] * PARTITIONS
    assert sum(each.is_full for each in fetches) == 2
    assert len({each.session_id for each in fetches if each.session_id}) == 2


async def test_closing_a_consumer_closes_its_session(
    client: kproto.Client, wide: str, fetches: list[SessionFetch]
) -> None:
    await send(client, wide, b"first")
    async with client.consumer(wide, max_wait_ms=20_000) as consumer:
        records = aiter(consumer)
        for _ in range(PARTITIONS):
            await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await until(lambda: len(fetches) > 1)
        await asyncio.sleep(0.2)
        begun = asyncio.get_running_loop().time()
        waiting.cancel()
        await consumer.close()
        assert asyncio.get_running_loop().time() - begun < 10  # less than max_wait_ms of the fetch
    fetch = FetchRequest(
        session_id=fetches[-1].session_id,
        session_epoch=fetches[-1].epoch + 1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
    )
    answer = await client.request(fetch, broker=_only(client))
    assert answer.error_code == code_of("FETCH_SESSION_ID_NOT_FOUND")


async def test_last_fetched_epoch_above_the_leader_epoch_is_out_of_range(
    client: kproto.Client, topic: str
) -> None:
    """The leader answers OFFSET_OUT_OF_RANGE, after which a consumer would reset its position.

    The leader does not know the fetched epoch, so the leader cannot return a diverging epoch.
    """
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
