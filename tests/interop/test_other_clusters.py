"""Tests the client on librdkafka's mock cluster and on kfake while partition leaders move.

Brokers of the mock cluster also stop and start again.

kfake detects resent batches by producer id and sequence, so kfake must store every record once and
in order. The mock cluster does not detect resent batches: if an acknowledgement was lost, the mock
cluster stores the resent batch a second time. In this case the test checks that the resent batch
equals the stored batch, because a broker that checks sequences then stores it only once. On both
clusters a consumer must read every record.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import kproto
from kproto.messages import OffsetForLeaderEpochRequest
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.records import RecordBatch
from tests.support.environment import ROOT
from tests.support.go_programs import built
from tools.setup.ports import free_ports

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))]

SCRIPTS = Path(__file__).parent / "peer_scripts"
TOPIC = "moving"
PARTITIONS = 6
RECORDS = 3_000
CHUNK = 100
ORDERS = 40
LONGEST_S = 60.0

#: On command, kfake does not answer a request, so the request timeout is short.
SETTINGS = kproto.ClientSettings(
    request_timeout_ms=5_000, retry_backoff_ms=10, retry_backoff_max_ms=100
)

#: The mock cluster answers whenever its broker is up, but late on a busy machine. With a shorter
#: timeout the client would resend batches that are already stored.
PATIENT = replace(SETTINGS, request_timeout_ms=60_000)

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_FOR_LEADER_EPOCH = 23
NOT_LEADER = 6


class OtherCluster:
    """A cluster in its own process, which carries out commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.bootstrap = self._line()

    def order(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._line()
        assert answer == "ok", f"{words}: {answer}"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def running(command: Sequence[str | Path]) -> Iterator[OtherCluster]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield OtherCluster(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def kfake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = ROOT / "tools/fuzz_adapters/kfake"
    return built("franz-go's kfake", folder, tmp_path_factory.mktemp("go"))


class Log:
    """Collects the stored batches of a partition, and checks their sequence numbers.

    `records` are the values of all batches, `unique` are the values without duplicate batches, and
    `duplicates` is the number of duplicate batches. Each batch must be the producer's next batch,
    or must repeat earlier records; otherwise raises AssertionError.
    """

    def __init__(self) -> None:
        self.records: list[bytes | None] = []
        self.unique: list[bytes | None] = []
        self.duplicates = 0
        self.producers: set[tuple[int, int]] = set()

    def append(self, batch: RecordBatch) -> None:
        values = [record.value for record in batch.records()]
        assert batch.base_offset == len(self.records)
        self.records += values
        self.producers.add((batch.producer_id, batch.producer_epoch))
        # With one producer, a sequence number is the count of earlier records in the partition.
        first, end = batch.base_sequence, batch.base_sequence + len(values)
        assert 0 <= first <= len(self.unique), f"a gap before sequence {first}"
        if first == len(self.unique):
            self.unique += values
        else:
            assert self.unique[first:end] == values, f"sequence {first} has other records now"
            self.duplicates += 1


async def stored(bootstrap: str) -> dict[int, Log]:
    """Returns the log of each partition, from all batches of the topic."""
    logs = {at: Log() for at in range(PARTITIONS)}
    async with kproto.Client(bootstrap) as client:
        async for fetched in client.consumer(TOPIC, stop_at_end=True).raw_batches():
            logs[fetched.partition].append(fetched.batch)
    return logs


async def check_delivery(
    cluster: OtherCluster,
    fault: Callable[[int], Sequence[object]],
    *,
    settings: kproto.ClientSettings = SETTINGS,
    may_duplicate: bool = False,
) -> None:
    """Writes and reads records while the cluster carries out the commands that `fault` returns.

    Checks that every record is stored and read in order. Unless `may_duplicate` is true, also
    checks that no batch is stored twice.
    """
    expected = {at: [b"%d" % n for n in range(RECORDS)][at::PARTITIONS] for at in range(PARTITIONS)}
    found: dict[int, list[bytes | None]] = {at: [] for at in range(PARTITIONS)}
    async with (
        asyncio.timeout(LONGEST_S),
        kproto.Client(cluster.bootstrap, settings) as writing,
        kproto.Client(cluster.bootstrap, settings) as reading,
    ):

        async def write() -> None:
            async with writing.producer() as producer:
                for first in range(0, RECORDS, CHUNK):
                    records = [
                        kproto.ProducerRecord(b"%d" % n, partition=n % PARTITIONS)
                        for n in range(first, first + CHUNK)
                    ]
                    await producer.send_many(TOPIC, records)
                    await asyncio.sleep(0.02)

        async def read() -> None:
            missing = {b"%d" % n for n in range(RECORDS)}
            async for record in reading.consumer(TOPIC, max_wait_ms=100):
                assert record.offset == len(found[record.partition])
                found[record.partition].append(record.value)
                missing.discard(record.value or b"")
                if not missing:
                    return

        async def send_orders() -> None:
            for number in range(ORDERS):
                await asyncio.sleep(0.02)
                await asyncio.to_thread(cluster.order, *fault(number))

        async with asyncio.TaskGroup() as tasks:
            for work in (write, read, send_orders):
                tasks.create_task(work())
        logs = await stored(cluster.bootstrap)
    assert {at: log.unique for at, log in logs.items()} == expected
    assert len(set().union(*(log.producers for log in logs.values()))) == 1
    for at, values in found.items():  # the consumer stops at the last missing record
        assert values == logs[at].records[: len(values)]
    if not may_duplicate:
        assert found == expected
        assert not any(log.duplicates for log in logs.values())


@pytest.mark.parametrize("seed", SEEDS)
async def test_records_are_delivered_while_mock_leaders_move(peers_python: Path, seed: int) -> None:
    chance = random.Random(seed)
    script = SCRIPTS / "moving_mock_cluster.py"

    def fault(number: int) -> Sequence[object]:
        match number % 4:
            case 0:
                key = chance.choice([PRODUCE, FETCH, LIST_OFFSETS])
                return "refuse", key, 2, NOT_LEADER
            case _:
                return "move", chance.randrange(PARTITIONS), chance.randint(1, 3)

    with running([peers_python, script, "3", TOPIC, str(PARTITIONS)]) as cluster:
        await check_delivery(cluster, fault, settings=PATIENT)


@pytest.mark.parametrize("seed", SEEDS)
async def test_records_are_delivered_while_mock_brokers_stop(peers_python: Path, seed: int) -> None:
    """The mock cluster has no failover: a stopped leader is the leader again after its restart.

    The brokers delay their responses. So when a broker stops, it has stored batches whose
    acknowledgement the producer has not received.
    """
    chance = random.Random(seed)
    script = SCRIPTS / "moving_mock_cluster.py"
    down: list[int] = []

    def fault(number: int) -> Sequence[object]:
        if down:
            return "up", down.pop()
        down.append(chance.randint(1, 3))
        return "down", down[0]

    with running([peers_python, script, "3", TOPIC, str(PARTITIONS)]) as cluster:
        for node in (1, 2, 3):
            cluster.order("delay", node, 10)
        await check_delivery(cluster, fault, settings=PATIENT, may_duplicate=True)


@pytest.mark.parametrize("seed", SEEDS)
async def test_records_are_delivered_while_kfake_leaders_move(kfake: Path, seed: int) -> None:
    chance = random.Random(seed)
    nodes = [0, 1, 2]

    def fault(number: int) -> Sequence[object]:
        match number % 5:
            case 0:
                return ("shuffle",)
            case 1 if len(nodes) < 4:
                nodes.append(max(nodes) + 1)
                return "add", nodes[-1]
            case 2 if len(nodes) > 2:
                return "remove", nodes.pop(chance.randrange(1, len(nodes)))
            case 3:
                return "forget", chance.choice([PRODUCE, FETCH, METADATA, LIST_OFFSETS]), 2
            case _:
                return "move", TOPIC, chance.randrange(PARTITIONS), chance.choice(nodes)

    (port,) = free_ports(1)
    # kfake runs without OffsetForLeaderEpoch, whose responses would report lost records, see below.
    with running([kfake, str(port), "3", str(OFFSET_FOR_LEADER_EPOCH)]) as cluster:
        async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
            await client.create_topics(kproto.NewTopic(TOPIC, PARTITIONS, 3))
        await check_delivery(cluster, fault)


async def test_kfake_forgets_the_last_epoch_when_a_leader_moves(kfake: Path) -> None:
    """Unlike Kafka, kfake forgets the end offset of the former leader epoch.

    docs/evidence/findings.md describes this fault.
    """
    (port,) = free_ports(1)
    with running([kfake, str(port), "3"]) as cluster:
        async with kproto.Client(cluster.bootstrap, SETTINGS) as client:
            await client.create_topics(kproto.NewTopic(TOPIC, 1, 3))
            async with client.producer() as producer:
                await producer.send(TOPIC, b"x")
            (before,) = await client.refresh([TOPIC])
            nodes = {0, 1, 2} - {before.partitions[0].leader}
            cluster.order("move", TOPIC, 0, nodes.pop())
            (after,) = await client.refresh([TOPIC])
            partition = OffsetForLeaderPartition(
                partition=0,
                current_leader_epoch=after.partitions[0].leader_epoch,
                leader_epoch=before.partitions[0].leader_epoch,
            )
            topic = OffsetForLeaderTopic(topic=TOPIC, partitions=[partition])
            answer = await client.request(
                OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]),
                broker=after.partitions[0].leader,
            )
            (found,) = answer.topics[0].partitions
            assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)
