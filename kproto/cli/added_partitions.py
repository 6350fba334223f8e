"""Reads partitions that are added to topics while `kproto consume` runs without a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final, TypeVar

from ..client import Client, TopicPartition
from ..clock import SYSTEM_CLOCK
from ..wire.errors import KprotoError
from .name_patterns import topics_of

__all__ = ["PartitionWatch", "partitions_beyond", "with_added"]

T = TypeVar("T")

#: The longest time between two looks at the metadata, in ms. People at a terminal expect the
#: records of a new partition before metadata.max.age.ms is over, which is 5 minutes by default.
_MOST_MS: Final = 10_000


class PartitionWatch:
    """Finds new partitions of topics, and topics that a pattern matches only later.

    `known` are the partitions that are already read.
    """

    def __init__(
        self, client: Client, topics: Iterable[str], known: Iterable[TopicPartition]
    ) -> None:
        self._client = client
        self._topics = list(topics)
        self._known = set(known)
        self._interval_s = min(client.settings.metadata_max_age_ms, _MOST_MS) / 1000

    async def next_added(self) -> list[TopicPartition]:
        """Waits until there are further partitions, and returns them once.

        A failed request is repeated at the next look: the consumer of the other partitions raises
        the error if it lasts.
        """
        while True:
            await SYSTEM_CLOCK.sleep(self._interval_s)
            try:
                names = await topics_of(self._client, self._topics)
                infos = await self._client.refresh(names) if names else []
            except KprotoError:
                continue
            present = [(info.name, number) for info in infos for number in info.partitions]
            added = partitions_beyond(self._known, present)
            if added:
                self._known.update(added)
                return added


def partitions_beyond(
    known: AbstractSet[TopicPartition], present: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Returns the partitions of `present` that are not in `known`, sorted."""
    return sorted(set(present) - known)


async def with_added(
    items: AsyncIterator[T],
    watch: PartitionWatch,
    open_items: Callable[[list[TopicPartition]], AbstractAsyncContextManager[AsyncIterator[T]]],
) -> AsyncGenerator[T]:
    """Yields `items`, and those of the partitions that `watch` finds, as they arrive.

    `open_items` opens an iterator over the items of partitions. Raises the first error of an
    iterator. Closing this generator first cancels the reads, so that no iterator is running when
    its context ends.
    """
    async with AsyncExitStack() as stack:
        watching = asyncio.ensure_future(watch.next_added())
        reads = {asyncio.ensure_future(anext(items, None)): items}
        try:
            while reads:
                done, _ = await asyncio.wait(
                    [watching, *reads], return_when=asyncio.FIRST_COMPLETED
                )
                if watching in done:
                    added = await stack.enter_async_context(open_items(watching.result()))
                    reads[asyncio.ensure_future(anext(added, None))] = added
                    watching = asyncio.ensure_future(watch.next_added())
                for read in [each for each in reads if each in done]:
                    source = reads.pop(read)
                    item = read.result()
                    if item is not None:
                        reads[asyncio.ensure_future(anext(source, None))] = source
                        yield item
        finally:
            tasks = [watching, *reads]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
