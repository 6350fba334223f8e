"""Measures the CPU time of rebalances of a large group with one client; prints it as JSON.

All members run in this process. The arguments are: CLIENT BOOTSTRAP TOPIC GROUP MEMBERS PARTITIONS
PROTOCOL ASSIGNOR.

The module imports the standard library only, because it also runs in the environment of the other
clients.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

__all__ = ["HEARTBEAT_MS", "Group", "Member", "main"]

HEARTBEAT_MS = 1_000
#: The number of joins, and of leaves, that are measured; the results are their medians.
CHANGES = 3
#: How long the idle group is measured before each of them, in seconds.
IDLE_S = 2.0
#: The time in which members look up their offsets and start to fetch after an assignment.
SETTLE_S = 1.0
POLL_S = 0.05
LIMIT_S = 120.0


class Group(NamedTuple):
    """The settings of all members."""

    bootstrap: str
    topic: str
    group_id: str
    protocol: str
    assignor: str


class Member(Protocol):
    """A member that polls until `stop`, with the numbers of its partitions and records."""

    assigned: int
    records: int

    async def stop(self) -> None:
        """Leaves the group and closes the client."""
        ...


async def _until(condition: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{what} took more than {LIMIT_S:.0f} s")
        await asyncio.sleep(POLL_S)


def _is_complete(members: list[Member], partitions: int) -> bool:
    """Returns True if the members have all partitions, in equal shares."""
    counts = [member.assigned for member in members]
    return sum(counts) == partitions and min(counts) >= partitions // len(members)


async def _measure(
    make: Callable[[Group], Member], group: Group, count: int, partitions: int
) -> dict[str, float]:
    """Returns the CPU seconds of a member in each rebalance, and the seconds of the rebalances.

    The CPU time that the idle members have in an equal time is subtracted, except for the start.
    """

    async def changed() -> tuple[float, float]:
        """Waits for the end of a rebalance; returns its seconds and its CPU seconds."""
        began, cpu = time.monotonic(), time.process_time()
        await _until(lambda: _is_complete(members, partitions), "a rebalance")
        took = time.monotonic() - began
        await asyncio.sleep(SETTLE_S)
        return took, time.process_time() - cpu - idle * (took + SETTLE_S)

    async def idle_cpu() -> float:
        """Returns the CPU seconds per second of the idle group."""
        cpu = time.process_time()
        await asyncio.sleep(IDLE_S)
        return (time.process_time() - cpu) / IDLE_S

    # The first member imports the modules of the client.
    members = [make(group._replace(group_id=f"{group.group_id}-first"))]
    idle = 0.0
    await changed()
    await members[0].stop()

    cpu = time.process_time()
    members = [make(group) for _ in range(count)]
    start_cpu = time.process_time() - cpu
    start_s, more = await changed()
    await _until(lambda: sum(each.records for each in members) >= partitions, "reading")
    await asyncio.sleep(SETTLE_S)
    found: dict[str, list[float]] = {
        key: [] for key in ("idle", "join", "leave", "join_s", "leave_s")
    }

    async def measure(change: str) -> None:
        took, spent = await changed()
        found[change].append(spent / (count + 1))
        found[f"{change}_s"].append(took)

    for _ in range(CHANGES):
        idle = await idle_cpu()
        found["idle"].append(idle / count)
        members.append(make(group))
        await measure("join")
        idle = await idle_cpu()
        leaving = asyncio.create_task(members.pop().stop())
        await measure("leave")
        await leaving
    await asyncio.gather(*(each.stop() for each in members))
    medians = {key: statistics.median(its) for key, its in found.items()}
    return {"start": (start_cpu + more) / count, "start_s": start_s, **medians}


def main() -> None:
    client, bootstrap, topic, group_id, members, partitions, protocol, assignor = sys.argv[1:]
    module = importlib.import_module(f"tools.bench.groups.members_of_{client}")
    group = Group(bootstrap, topic, group_id, protocol, assignor)
    print(json.dumps(asyncio.run(_measure(module.make, group, int(members), int(partitions)))))


if __name__ == "__main__":
    main()
