"""Measures starts of members, and handovers of partitions, for clients with a poll loop.

A handover is measured with two consumers, each of which polls in its own thread.

The module imports the standard library only, because it runs in the environment of the other
clients.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["PollLoopFunctions", "run"]


class PollLoopFunctions(NamedTuple):
    """Holds the functions with which the benchmark drives a client that has a poll loop.

    `make(group)` returns a subscribed consumer. `poll(consumer)` polls, and returns the partitions
    of the records. `assigned(consumer)` returns the assigned partitions.
    """

    make: Callable[[str], Any]
    poll: Callable[[Any], list[int]]
    assigned: Callable[[Any], list[int]]


def _first(client: PollLoopFunctions, name: str) -> float:
    began = time.perf_counter()
    consumer = client.make(name)
    while not client.poll(consumer):
        pass
    took = time.perf_counter() - began
    consumer.close()
    return took


def _handover(client: PollLoopFunctions, name: str) -> float:
    seen: queue.Queue[tuple[float, int]] = queue.Queue()
    assigned: dict[str, list[int]] = {"stays": [], "goes": []}
    stop = {"stays": threading.Event(), "goes": threading.Event()}
    left_at: list[float] = []

    def work(which: str) -> None:
        consumer = client.make(name)
        while not stop[which].is_set():
            partitions = client.poll(consumer)
            if which == "stays":
                for partition in partitions:
                    seen.put((time.perf_counter(), partition))
            assigned[which] = client.assigned(consumer)
        if which == "goes":
            left_at.append(time.perf_counter())
        consumer.close()

    threads = [threading.Thread(target=work, args=(which,)) for which in assigned]
    for thread in threads:
        thread.start()
    while not (len(assigned["stays"]) == len(assigned["goes"]) == 1):
        time.sleep(0.01)
    time.sleep(0.5)
    (left,) = assigned["goes"]
    stop["goes"].set()
    while not left_at:
        time.sleep(0.001)
    while True:
        at, partition = seen.get()
        if at > left_at[0] and partition == left:
            break
    stop["stays"].set()
    for thread in threads:
        thread.join()
    return at - left_at[0]


def run(client: PollLoopFunctions, group: str, rounds: int) -> None:
    """Measures a start and a handover in each round; prints the seconds as JSON.

    The JSON has the lists `first` (starts) and `handover`. Each measurement uses a new group, whose
    name begins with `group`.
    """
    found: dict[str, list[float]] = {"first": [], "handover": []}
    for number in range(rounds):
        found["first"].append(_first(client, f"{group}-first-{number}"))
        found["handover"].append(_handover(client, f"{group}-handover-{number}"))
    print(json.dumps(found))
