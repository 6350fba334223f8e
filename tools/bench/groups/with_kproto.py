"""Runs the rounds of `tools.bench.groups.members` with kproto.

Each round measures the start of a member, and then a handover of partitions to another member.
The arguments are: BOOTSTRAP TOPIC GROUP HEARTBEAT_MS ROUNDS PROTOCOL.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import kproto

bootstrap, topic, group = sys.argv[1:4]
heartbeat_ms, rounds = map(int, sys.argv[4:6])

OF_PROTOCOL: dict[str, dict[str, Any]] = {
    "classic": {
        "group_protocol": "classic",
        "assignors": ["range"],
        "heartbeat_interval_ms": heartbeat_ms,
        "session_timeout_ms": 6_000,
    },
    "consumer": {"group_protocol": "consumer", "server_assignor": "range"},
}


def consumer_of(client: kproto.Client, name: str) -> Any:
    return client.consumer(
        topic,
        group=name,
        auto_commit=False,
        **OF_PROTOCOL[sys.argv[6]],
    )


async def first(name: str) -> float:
    began = time.perf_counter()
    async with kproto.Client(bootstrap) as client, consumer_of(client, name) as consumer:
        await anext(aiter(consumer))
        return time.perf_counter() - began


async def until_shared(one: Any, other: Any) -> None:
    """Waits until each consumer has one partition."""
    while True:
        if len(one.assignment) == len(other.assignment) == 1:
            return
        await asyncio.sleep(0.01)


async def handover(name: str) -> float:
    async with kproto.Client(bootstrap) as client, AsyncExitStack() as leaving:
        staying = await leaving.enter_async_context(consumer_of(client, name))
        stack = AsyncExitStack()
        going = await stack.enter_async_context(consumer_of(client, name))
        seen: asyncio.Queue[tuple[float, int]] = asyncio.Queue()

        async def read(consumer: Any, told: asyncio.Queue[tuple[float, int]] | None) -> None:
            async for record in consumer:
                if told is not None:
                    told.put_nowait((time.perf_counter(), record.partition))

        tasks = [asyncio.create_task(read(staying, seen)), asyncio.create_task(read(going, None))]
        await until_shared(staying, going)
        await asyncio.sleep(0.5)
        ((_, left),) = going.assignment
        tasks[1].cancel()
        await asyncio.wait(tasks[1:])
        began = time.perf_counter()
        closing = asyncio.create_task(stack.aclose())
        while True:
            at, partition = await seen.get()
            if at > began and partition == left:
                break
        await closing
        tasks[0].cancel()
        await asyncio.wait(tasks)
        return at - began


async def main() -> None:
    found: dict[str, list[float]] = {"first": [], "handover": []}
    for number in range(rounds):
        found["first"].append(await first(f"{group}-first-{number}"))
        found["handover"].append(await handover(f"{group}-handover-{number}"))
    print(json.dumps(found))


asyncio.run(main())
