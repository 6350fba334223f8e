"""Who wants other topics while his member joins gets them, at whichever moment that was."""

from __future__ import annotations

import asyncio

import pytest

from kproto import Client, NewTopic
from kproto.broker import Broker


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_other_topics_are_read_whenever_they_were_subscribed_to(assignor: str) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics(NewTopic("a", 1), NewTopic("b", 1))
        has_joined = False
        turns = 0
        while not has_joined:
            turns += 1
            consumer = client.consumer("a", group=f"g{turns}", assignors=[assignor])
            async with consumer, asyncio.timeout(5):
                for _ in range(turns):
                    await asyncio.sleep(0)
                has_joined = bool(consumer.assignment)
                consumer.subscribe(["a", "b"])
                while len(consumer.assignment) < 2:  # noqa: ASYNC110 - the member's, and no event
                    await asyncio.sleep(0)
