"""Tests that a changed subscription takes effect, at whichever point of a join it changes."""

from __future__ import annotations

import asyncio

import pytest

from kproto import Client, NewTopic
from kproto.broker import Broker


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.slow
async def test_subscription_changed_while_joining_takes_effect(assignor: str) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics(NewTopic("a", 1), NewTopic("b", 1))
        has_joined = False
        iterations = 0
        while not has_joined:
            iterations += 1
            consumer = client.consumer("a", group=f"g{iterations}", assignors=[assignor])
            async with consumer, asyncio.timeout(5):
                for _ in range(iterations):
                    await asyncio.sleep(0)
                has_joined = bool(consumer.assignment)
                consumer.subscribe(["a", "b"])
                while len(consumer.assignment) < 2:  # noqa: ASYNC110 - a property, and no event
                    await asyncio.sleep(0)
