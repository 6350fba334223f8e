"""Injects faults into a cluster; a seed chooses the faults, and `Report` counts them.

`InjectedFaults` decides about each request of the clients with the id `FAULTY`. It loses, delays
and repeats requests, loses responses, answers with error codes, and moves leaders between requests.
At the same time, it restarts brokers.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from kproto import Client, KprotoError
from kproto.broker import BrokerSettings, Cluster
from kproto.broker.faults import Close, Cut, Delay, ErrorCode
from kproto.client.settings import ClientSettings
from kproto.protocol.connection import ReceivedRequest
from tests.support.virtual_time import LoopClock

__all__ = [
    "FAULTY",
    "INPUTS",
    "PARTITIONS",
    "SETTINGS",
    "Attempt",
    "InjectedFaults",
    "Outcome",
    "Report",
    "Schedule",
]

#: The client id of the clients whose requests are disturbed.
FAULTY: Final = "faulty"

#: The partitions of each topic.
PARTITIONS: Final = 3
#: The records in each partition of `in`.
INPUTS: Final = 16

SETTINGS: Final = ClientSettings(
    retry_backoff_ms=5,
    retry_backoff_max_ms=50,
    reconnect_backoff_ms=5,
    reconnect_backoff_max_ms=50,
    metadata_wait_ms=2_000,
    request_timeout_ms=700,
    delivery_timeout_ms=4_000,
    api_timeout_ms=4_000,
    error_flush_ms=1_000,
    cancelled_close_ms=1_000,
)

#: The errors that a broker may return for each request of a transaction, or of a group.
_ERRORS: Final[dict[str, tuple[str, ...]]] = {
    "ProduceRequest": (
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "UNKNOWN_PRODUCER_ID",
        "TRANSACTION_ABORTABLE",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_TXN_STATE",
        "CONCURRENT_TRANSACTIONS",
        "KAFKA_STORAGE_ERROR",
    ),
    "EndTxnRequest": (
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "TRANSACTION_ABORTABLE",
        "PRODUCER_FENCED",
        "INVALID_TXN_STATE",
    ),
    "TxnOffsetCommitRequest": (
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "TRANSACTION_ABORTABLE",
        "CONCURRENT_TRANSACTIONS",
        "PRODUCER_FENCED",
    ),
    "AddPartitionsToTxnRequest": (
        "CONCURRENT_TRANSACTIONS",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "TRANSACTION_ABORTABLE",
        "PRODUCER_FENCED",
    ),
    "AddOffsetsToTxnRequest": (
        "CONCURRENT_TRANSACTIONS",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "TRANSACTION_ABORTABLE",
    ),
    "InitProducerIdRequest": (
        "CONCURRENT_TRANSACTIONS",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "PRODUCER_FENCED",
    ),
    "FindCoordinatorRequest": ("COORDINATOR_NOT_AVAILABLE",),
    "OffsetFetchRequest": (
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "UNSTABLE_OFFSET_COMMIT",
    ),
    "JoinGroupRequest": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    "SyncGroupRequest": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "HeartbeatRequest": ("NOT_COORDINATOR", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "ConsumerGroupHeartbeatRequest": (
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
        "FENCED_MEMBER_EPOCH",
    ),
    "FetchRequest": ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR"),
}

#: The requests whose copies can arrive late, by transaction version. Before version 2 (KIP-890), a
#: late EndTxn would end the producer's next transaction, so only Produce is copied.
_COPIED: Final = {
    0: ("ProduceRequest",),
    2: ("ProduceRequest", "EndTxnRequest", "TxnOffsetCommitRequest"),
}

#: The other requests of a transaction, which are not copied.
_ADDING: Final = ("AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest", "InitProducerIdRequest")

#: The topics whose leaders move.
_MOVED: Final = ("in", "out", "t", "__transaction_state", "__consumer_offsets")

Outcome = Literal["committed", "aborted", "unknown"]


@dataclass
class Attempt:
    """A transaction: its values by partition in the order of their sends, and its outcome."""

    label: str
    topic: str
    values: dict[int, list[bytes]] = field(default_factory=dict)
    outcome: Outcome = "unknown"


@dataclass
class Report:
    """The transactions of a schedule, and how often each kind of fault was injected."""

    attempts: list[Attempt] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    transactional_ids: set[str] = field(default_factory=set)


@dataclass
class Schedule:
    """The choices of a seed: versions, and the shares of requests that each fault hits."""

    seed: int

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        chance = self.chance
        self.version: int = (0, 2)[self.seed % 2]
        self.protocol: Literal["classic", "consumer"] = ("classic", "consumer")[self.seed // 2 % 2]
        self.share_of_faults = chance.choice([0.0, 0.03, 0.08, 0.15, 0.3])
        self.share_of_moves = chance.choice([0.0, 0.0, 0.1, 0.4])
        self.share_of_others = chance.choice([0.0, 0.01, 0.03, 0.1])  # faults of reads and groups
        self.restarts = chance.random() < 0.4
        self.has_zombie = chance.random() < 0.5

    def broker_settings(self) -> BrokerSettings:
        return BrokerSettings(
            transaction_version=self.version,
            offsets_topic_num_partitions=2,
            transaction_state_log_num_partitions=2,
            group_consumer_session_timeout_ms=6_000,
            group_consumer_min_session_timeout_ms=6_000,
            group_consumer_heartbeat_interval_ms=500,
            group_consumer_min_heartbeat_interval_ms=500,
        )


class InjectedFaults:
    """Injects the faults of a schedule until `stop`."""

    def __init__(self, schedule: Schedule, cluster: Cluster, report: Report) -> None:
        self._schedule = schedule
        self._chance = random.Random(schedule.seed + 1_000_000)
        self._cluster = cluster
        self._report = report
        self._tasks: set[asyncio.Task[Any]] = set()
        self._copier = Client(cluster.bootstrap, SETTINGS, clock=LoopClock())
        self._is_on = True
        for node in cluster.nodes:
            cluster.control(partial(self._decide, node), node=node)

    def _decide(self, node: int, request: ReceivedRequest) -> Any:
        if not self._is_on or request.client_id != FAULTY or request.name not in _ERRORS:
            return None
        chance, schedule = self._chance, self._schedule
        is_transactional = request.name in (*_COPIED[2], *_ADDING)
        if is_transactional and chance.random() < schedule.share_of_moves:
            self._move_leader()
        share = schedule.share_of_faults if is_transactional else schedule.share_of_others
        if chance.random() >= share:
            return None
        kind = chance.choice(["cut", "lost", "delay", "error", "late", "done", "duplicate"])
        if kind in ("late", "done", "duplicate") and request.name not in _COPIED[schedule.version]:
            kind = chance.choice(["cut", "error"])
        self._report.faults[f"{request.name}: {kind}"] += 1
        return self._outcome(kind, node, request)

    def _outcome(self, kind: str, node: int, request: ReceivedRequest) -> Any:
        chance = self._chance
        match kind:
            case "cut":
                return Cut(0)
            case "lost":
                return Close()
            case "delay":
                return Delay(chance.choice([1, 20, 100, 1_500]))
            case "late":
                self._copy(node, request, chance.choice([0.001, 0.05, 0.5, 3.0]))
                return Close()
            case "duplicate":
                self._copy(node, request, chance.choice([0.001, 0.05, 0.5]))
                return None
            case "done":  # it is carried out, although the response has an error
                self._copy(node, request, 0)
                is_produce = request.name == "ProduceRequest"
                name = "NOT_LEADER_OR_FOLLOWER" if is_produce else "COORDINATOR_NOT_AVAILABLE"
                return ErrorCode(name)(request)
        return ErrorCode(chance.choice(_ERRORS[request.name]))(request)

    def _copy(self, node: int, request: ReceivedRequest, seconds: float) -> None:
        message = request.message
        assert message is not None

        async def send() -> None:
            await asyncio.sleep(seconds)
            with suppress(KprotoError):
                await self._copier.request(message, broker=node, version=request.version)

        self._start(send())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _move_leader(self) -> None:
        cluster, chance = self._cluster, self._chance
        topic = chance.choice(_MOVED)
        if topic not in cluster.topics:
            return
        partition = chance.randrange(len(cluster.topics[topic].partitions))
        nodes = [node for node in cluster.nodes if cluster.broker(node).is_listening]
        cluster.move_leader(topic, partition, chance.choice(nodes))
        self._report.faults[f"leader of {topic} moved"] += 1

    async def disturb(self) -> None:
        """Moves leaders, and restarts brokers, until this coroutine is cancelled."""
        chance, cluster = self._chance, self._cluster
        while True:
            await asyncio.sleep(chance.uniform(0.02, 1.0))
            if self._schedule.restarts and chance.random() < 0.3:
                node = chance.choice(cluster.nodes)
                await cluster.stop_broker(node)
                await asyncio.sleep(chance.uniform(0, 1.0))
                await cluster.start_broker(node)
                self._report.faults["broker restarted"] += 1
            elif self._schedule.share_of_moves:
                self._move_leader()

    async def stop(self) -> None:
        """Injects no further faults, and waits until all late copies of requests are sent."""
        self._is_on = False
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        await self._copier.close()
        for node in self._cluster.nodes:
            await self._cluster.start_broker(node)
