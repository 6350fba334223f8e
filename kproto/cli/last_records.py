"""Finds the offsets of the last records of partitions, for `kproto consume --last`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Any

from ..client import Client, TopicPartition

__all__ = ["find_last_records"]


async def find_last_records(
    client: Client, tps: Iterable[TopicPartition], count: int, *, read_committed: bool
) -> dict[TopicPartition, int]:
    """Returns the offset of the first of the last `count` records of each partition.

    An offset may hold no record: a marker, a record that was compacted away or, with
    `read_committed`, a record of an aborted transaction. So the function reads the offsets before
    the end, and reads twice as many as long as a partition has too few records among them.
    """
    tps = list(tps)
    first = await client.list_offsets(dict.fromkeys(tps, "earliest"))
    ends = await client.list_offsets(dict.fromkeys(tps, "latest"), read_committed=read_committed)
    found = {tp: ends[tp] for tp in tps if not count or ends[tp] <= first[tp]}
    span = count
    while left := [tp for tp in tps if tp not in found]:
        starts = {tp: max(first[tp], ends[tp] - span) for tp in left}
        offsets = await _offsets(client, starts, ends, count, read_committed=read_committed)
        for tp, its in offsets.items():
            if len(its) == count:
                found[tp] = its[0]
            elif starts[tp] == first[tp]:
                found[tp] = first[tp]
        span *= 2
    return found


async def _offsets(
    client: Client,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    count: int,
    *,
    read_committed: bool,
) -> dict[TopicPartition, deque[int]]:
    """Returns the offsets of the last `count` records between `starts` and `ends`."""
    found: dict[TopicPartition, deque[int]] = {tp: deque(maxlen=count) for tp in starts}
    arguments: dict[str, Any] = {"read_committed": read_committed, "stop_at_end": True}
    consumer = client.consumer(list(starts), group=None, start=dict(starts), **arguments)
    async with consumer, aclosing(consumer.record_lists()) as lists:
        async for each in lists:
            tp = each.topic, each.partition
            found[tp].extend(it.offset for it in each.records if it.offset < ends[tp])
    return found
