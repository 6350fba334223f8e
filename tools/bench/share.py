"""Measures share groups on a real broker: kproto, its group consumer, and Java's share consumer.

    python -m tools.bench.share [--records N] [--rounds N]

The members of a round acquire and accept all `--records` records of 100 bytes of a topic with four
partitions; each member is a process. The order of the clients alternates, and a result is the
median of the rounds. The CPU time of a record is that of the members between their first and their
last record. The rate is that of all members together. The first record is the time from the start
of a consumer to its first record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from typing import Any, Final, NamedTuple

from kproto import Client, NewTopic, ProducerRecord
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from tools.kafka import KafkaNode
from tools.share.java import share_worker

#: The highest CPU time of a record, compared with that of kproto's group consumer.
WANTED_CPU: Final = 1.5

#: The lowest rate, and the longest time to the first record, compared with Java's share consumer.
WANTED_RATE: Final = 0.8
WANTED_FIRST: Final = 1.0

VALUE: Final = b"v" * 100
PARTITIONS: Final = 4
MEMBERS: Final = (1, 4)

#: A member ends after this many seconds without a record.
IDLE_S: Final = 2.0

#: A member that gets no record ends after this many seconds.
FIRST_S: Final = 20.0

#: The clients of a round, with the mode of acknowledgement.
CLIENTS: Final = ("share implicit", "share explicit", "group", "java explicit")

CONFIG: Final = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.heartbeat.interval.ms": "5000",
}


class Measured(NamedTuple):
    """The results of the members of one round."""

    cpu_us: float
    rate: float
    first_s: float


async def work(kind: str, bootstrap: str, topic: str, group: str) -> None:
    """Reads all records of a topic as one member, and prints the summary as a line of JSON."""
    count = 0
    first_at = last_at = cpu = spent = 0.0
    async with Client(bootstrap) as client:
        began = time.time()
        consumer: Any
        if kind == "group":
            consumer = client.consumer(topic, group=group)
        else:
            mode: Any = kind.rpartition(" ")[2]
            consumer = client.share_consumer(topic, group=group, acknowledgement=mode)
        is_explicit = kind == "share explicit"
        async with consumer:
            iteration = aiter(consumer)

            async def read() -> None:
                nonlocal count, first_at, last_at, cpu, spent
                async for record in iteration:
                    if not count:
                        first_at, cpu = time.time(), time.process_time()
                    count += 1
                    if is_explicit:
                        await consumer.accept(record)
                    if not count & 0xFF:
                        last_at, spent = time.time(), time.process_time() - cpu

            reading = asyncio.create_task(read())
            while not reading.done() and (  # noqa: ASYNC110 - the end is a time without records
                time.time() < max(last_at + IDLE_S, began + FIRST_S)
            ):
                await asyncio.sleep(0.1)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    its = {"count": count, "first_s": first_at - began, "first_at": first_at}
    print(json.dumps({**its, "last_at": last_at, "cpu_s": spent}))


def measure(kind: str, bootstrap: str, topic: str, group: str, members: int) -> Measured:
    """Runs the members of one round, and returns their results."""
    if kind.startswith("java"):
        command = share_worker(bootstrap, topic, group, idle_s=IDLE_S, output="summary")
    else:
        module = [sys.executable, "-m", "tools.bench.share", "--worker", kind]
        command = [*module, bootstrap, topic, group]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(members)
    ]
    found = []
    for each in running:
        assert each.stdout is not None
        found.append(json.loads(each.stdout.readline()))
        each.communicate()
    busy = [each for each in found if each["count"]]
    count = sum(each["count"] for each in busy)
    took = max(each["last_at"] for each in busy) - min(each["first_at"] for each in busy)
    return Measured(
        sum(each["cpu_s"] for each in busy) / count * 1e6,
        count / took,
        statistics.median(each["first_s"] for each in busy),
    )


async def prepare(bootstrap: str, topic: str, records: int, groups: list[str]) -> None:
    """Writes the records, and makes the groups begin at the start of the topic."""
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, PARTITIONS))
        async with client.producer() as producer:
            for _ in range(0, records, 50_000):
                await producer.send_many(
                    topic,
                    [
                        ProducerRecord(VALUE, partition=at % PARTITIONS)
                        for at in range(min(records, 50_000))
                    ],
                )
        config = {"share.auto.offset.reset": "earliest"}
        resources = {ConfigResource(ConfigResourceType.GROUP, each): config for each in groups}
        await client.admin.incremental_alter_configs(resources)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.share", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="records of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs=4, metavar=("KIND", "BOOTSTRAP", "TOPIC", "GROUP"))
    options = parser.parse_args()
    if options.worker:
        asyncio.run(work(*options.worker))
        return 0
    found: dict[tuple[str, int], list[Measured]] = {}
    with KafkaNode("4.4.0", config=CONFIG) as kafka:
        groups = {
            (kind, members, at): f"{kind.replace(' ', '-')}-{members}-{at}"
            for kind in CLIENTS
            for members in MEMBERS
            for at in range(options.rounds)
        }
        shares = [name for (kind, *_), name in groups.items() if kind != "group"]
        asyncio.run(prepare(kafka.bootstrap, "bench", options.records, shares))
        for at in range(options.rounds):
            order = CLIENTS if at % 2 == 0 else CLIENTS[::-1]
            for members in MEMBERS:
                for kind in order:
                    group = groups[kind, members, at]
                    its = measure(kind, kafka.bootstrap, "bench", group, members)
                    found.setdefault((kind, members), []).append(its)
                    print(f"{members} {kind}: {its}", file=sys.stderr, flush=True)
    return report(found)


def report(found: dict[tuple[str, int], list[Measured]]) -> int:
    """Prints the table; returns 1 if a result misses its goal."""
    medians = {
        key: Measured(*(statistics.median(each) for each in zip(*its, strict=True)))
        for key, its in found.items()
    }
    print("| members | client | CPU a record | records/s | first record |")
    print("|---|---|---|---|---|")
    for (kind, members), its in sorted(medians.items(), key=lambda each: each[0][1]):
        print(
            f"| {members} | {kind} | {its.cpu_us:.2f} µs | {its.rate:,.0f} | {its.first_s:.2f} s |"
        )
    misses = []
    for members in MEMBERS:
        ours, group = medians["share implicit", members], medians["group", members]
        java = medians["java explicit", members]
        ratios = (
            ("CPU of the group consumer", ours.cpu_us / group.cpu_us, ours.cpu_us, WANTED_CPU),
            ("rate of Java", ours.rate / java.rate, -ours.rate, WANTED_RATE),
            ("first record of Java", ours.first_s / java.first_s, ours.first_s, WANTED_FIRST),
        )
        for what, ratio, sign, goal in ratios:
            is_missed = ratio < goal if sign < 0 else ratio > goal
            limit = "at least" if sign < 0 else "at most"
            print(f"\n{members} members: {ratio:.2f} times the {what} ({limit} {goal})")
            if is_missed:
                misses.append(what)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
