"""Tests concurrent metadata refreshes: calls share the next request, not a request in flight."""

from __future__ import annotations

import asyncio

from kproto import Client
from kproto.messages import MetadataRequest, MetadataResponse
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.scripted_cluster import scripted_cluster


async def test_an_answer_is_not_older_than_its_question() -> None:
    answered, go_on = asyncio.Event(), asyncio.Event()
    async with scripted_cluster(1) as cluster, Client(cluster.bootstrap) as client:

        async def metadata(asked: ReceivedRequest) -> MetadataResponse:
            answer = cluster.metadata(asked)
            answered.set()
            await go_on.wait()
            return answer

        cluster.topic("t", [0])
        cluster.answer(MetadataRequest, metadata)
        first = asyncio.create_task(client.refresh(["t"]))
        await answered.wait()
        cluster.topic("t", [0, 0])  # a partition is added, and metadata is requested again
        later = [asyncio.create_task(client.refresh(["t"])) for _ in range(10)]
        await asyncio.sleep(0)
        go_on.set()
        assert [len(info.partitions) for info in await first] == [1]
        for infos in await asyncio.gather(*later):
            assert [len(info.partitions) for info in infos] == [2]
        assert cluster.asked_for()[1:] == [["t"], ["t"]], "those that came later have one request"
