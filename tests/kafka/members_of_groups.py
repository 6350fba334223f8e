"""Provides members of a group at a real broker, each with its own client."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Self

import kproto
from kproto import Client
from tests.support.recording_listener import RecordingListener

__all__ = ["Members", "all_of", "shared", "until"]


class Members:
    """The members of group `id`; callers add members, and the `async with` block closes them."""

    def __init__(self, bootstrap: str) -> None:
        self.id = f"group-{uuid.uuid4().hex}"
        self.bootstrap = bootstrap
        self.members: list[Any] = []
        self.clients: list[Client] = []

    async def client(self) -> Client:
        """Returns a new, connected client."""
        settings = kproto.ClientSettings(metadata_max_age_ms=1_000, retry_backoff_max_ms=200)
        client = Client(self.bootstrap, settings)
        await client.__aenter__()
        self.clients.append(client)
        return client

    async def topic(self, partitions: int, name: str = "") -> str:
        """Creates a topic, and returns its name."""
        name = name or f"group-{uuid.uuid4().hex}"
        client = await self.client()
        await client.create_topics(kproto.NewTopic(name, partitions=partitions))
        await client.topic(name)
        return name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for member in self.members:
            await member.close()
        for client in self.clients:
            await client.close()


def all_of(topic: str, count: int) -> set[tuple[str, int]]:
    """Returns the partitions 0 to `count` - 1 of a topic."""
    return {(topic, number) for number in range(count)}


async def until(condition: Callable[[], object]) -> None:
    """Waits until `condition` holds; only the test's own timeout limits the wait."""
    while not condition():  # noqa: ASYNC110 - the condition has no event in this loop
        await asyncio.sleep(0.005)


def shared(topic: str, count: int, *listeners: RecordingListener) -> bool:
    """Returns whether the members of `listeners` share all `count` partitions of `topic`.

    Each partition must have exactly one owner, and each member must own a partition.
    """
    read = [place for listener in listeners for place in listener.partitions]
    return sorted(read) == sorted(all_of(topic, count)) and all(
        each.partitions for each in listeners
    )
