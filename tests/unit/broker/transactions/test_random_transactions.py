"""Runs random schedules of several producers, and compares what consumers see with a plain oracle.

The oracle notes each record and each committed offset in the order of the responses, and the
outcome of each transaction. The oracle knows nothing of epochs, markers or coordinators. During a
schedule, coordinators and leaders move, nodes stop and start, transactions time out, requests are
repeated, and fenced producers go on sending. The seed of a failed schedule repeats this schedule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

import pytest

from kproto.broker.coordinators import CoordinatorType
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC
from kproto.broker.leader_and_isr import NO_LEADER
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.batches import batch_bytes
from tests.support.selection import rest_slow

from .transaction_driver import Play, Producer, name_of

SCHEDULES = 60
STEPS = 150
GROUPS = ("g", "h")
PLACES = (("t", 0), ("t", 1), ("s", 0), ("s", 1), ("s", 2))
TIMEOUTS_MS = (2_000, 60_000)


@dataclass
class Transaction:
    """A transaction of the oracle: `open`, `committed` or `aborted`."""

    start_ms: int
    timeout_ms: int
    outcome: str = "open"
    #: The partitions of topics t and s that were added to the transaction.
    places: set[tuple[str, int]] = field(default_factory=set)


@dataclass
class Id:
    """A transactional id with its present producer, its fenced producers and its transaction."""

    producer: Producer
    timeout_ms: int
    fenced: list[Producer] = field(default_factory=list)
    transaction: Transaction | None = None
    #: The partitions of the last transaction that may not have the transaction's marker yet.
    unmarked: set[tuple[str, int]] = field(default_factory=set)
    #: Whether the present producer has been initialized, and not lost its transaction.
    is_ready: bool = False
    last_end: tuple[tuple[int, int], bool] | None = None
    pair_after_end: tuple[int, int] = (-1, -1)
    #: The transaction of the last batch that the present producer sent.
    last_written: Transaction | None = None


class Schedule:
    """Sends requests in a random order that depends on `seed`, and checks all results."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        level = self.chance.choice((0, 2))
        self.play = Play(transaction_version=level, transaction_state_log_num_partitions=2)
        self.ids: list[Id] = []
        for number in range(3):
            version = self.chance.choice((0, 2)) if level >= 2 else 0
            producer = Producer(self.play, f"tx-{number}", version=version)
            self.ids.append(Id(producer, self.chance.choice(TIMEOUTS_MS)))
        #: The values of each partition, with their transactions.
        self.log: dict[tuple[str, int], list[tuple[str, Transaction | None]]] = defaultdict(list)
        #: The offsets for t-0 and t-1 of each group, with their transactions.
        self.commits: dict[tuple[str, int], list[tuple[int, Transaction | None]]]
        self.commits = defaultdict(list)
        self.stopped: int | None = None
        self.written = 0
        self.steps: list[str] = []

    async def run(self) -> None:
        kinds = (
            [self.write] * 8
            + [self.commit_offset] * 3
            + [self.end] * 4
            + [self.repeat_produce, self.repeat_end, self.zombie, self.replace, self.initialize]
            + [self.write_plainly, self.commit_plainly]
            + [self.move, self.stop_or_start]
        )
        for _ in range(STEPS):
            step = self.chance.choice(kinds)
            its = self.chance.choice(self.ids)
            self.steps.append(f"{step.__name__} {its.producer.transactional_id}")
            step(its)
            if self.chance.random() < 0.3:
                await self.play.wait(self.chance.choice((1, 100, 700)))
                self.expire()
            if self.chance.random() < 0.4:
                self.check()
        if self.stopped is not None:
            self.stop_or_start(self.ids[0])
        self.check()
        await self.play.wait(max(TIMEOUTS_MS) + 1)
        self.expire()
        self.check()
        for place in PLACES:
            end_offset = self.play.partition(*place).log.end_offset
            assert self.play.latest(*place) == end_offset, "no transaction is open any more"

    def expire(self) -> None:
        """Notes that transactions whose timeout is over are aborted, and sends a request.

        The request makes the coordinator handle its timeouts.
        """
        for its in self.ids:
            transaction = its.transaction
            if transaction is None:
                continue
            if transaction.start_ms + transaction.timeout_ms < self.play.clock.now_ms():
                self.finish(its, "aborted")
                its.is_ready = False
        self.play.latest("t")  # a request, so that the coordinator handles the timeouts now

    # Requests

    def initialize(self, its: Id) -> None:
        """Sends InitProducerId for the present producer; this aborts an open transaction."""
        if its.transaction is not None:
            error = its.producer.init(timeout_ms=its.timeout_ms)
            assert error == "CONCURRENT_TRANSACTIONS", error
            self.finish(its, "aborted")
        waits = self.waits_for_leader(its)
        error = its.producer.init(timeout_ms=its.timeout_ms)
        assert error == ("CONCURRENT_TRANSACTIONS" if waits else "NONE"), error
        its.is_ready = not waits

    def replace(self, its: Id) -> None:
        """Starts a new producer with the same transactional id; it fences the former producer."""
        former = its.producer
        its.producer = Producer(self.play, former.transactional_id, version=former.version)
        its.last_end = None
        self.initialize(its)
        if its.is_ready and former.producer_id >= 0:
            its.fenced.append(former)

    def finish(self, its: Id, outcome: str) -> None:
        """Notes the outcome of the transaction of an id."""
        assert its.transaction is not None
        its.transaction.outcome = outcome
        its.unmarked = {place for place in its.transaction.places if not self.is_led(place)}
        its.transaction = None

    def waits_for_leader(self, its: Id) -> bool:
        """Returns True if a marker of the last transaction of an id waits for a leader."""
        return any(not self.is_led(place) for place in its.unmarked)

    def is_led(self, place: tuple[str, int]) -> bool:
        return self.play.partition(*place).leader_and_isr.leader != NO_LEADER

    def write(self, its: Id) -> None:
        if not its.is_ready:
            self.initialize(its)
            if not its.is_ready:
                return
        place = self.chance.choice(PLACES)
        waits = self.waits_for_leader(its)
        if its.producer.version < 2:
            error = its.producer.add(place)
            assert error == ("CONCURRENT_TRANSACTIONS" if waits else "NONE"), error
            if not waits:
                self.open(its).places.add(place)
        self.written += 1
        values = [f"{self.written}.{number}" for number in range(self.chance.choice((1, 1, 3)))]
        its.last_written = None
        error = its.producer.produce(*place, *values)
        if waits:
            assert error != "NONE"
        elif not self.is_led(place):
            assert error == "NOT_LEADER_OR_FOLLOWER", error
        else:
            assert error == "NONE", error
            transaction = self.open(its)
            transaction.places.add(place)
            its.last_written = transaction
            self.log[place] += [(value, transaction) for value in values]

    def open(self, its: Id) -> Transaction:
        """Returns the open transaction of an id; begins one if none is open."""
        assert its.is_ready
        if its.transaction is None:
            its.transaction = Transaction(self.play.clock.now_ms(), its.timeout_ms)
        return its.transaction

    def commit_offset(self, its: Id) -> None:
        if not its.is_ready:
            self.initialize(its)
            if not its.is_ready:
                return
        waits = self.waits_for_leader(its)
        group, index = self.chance.choice(GROUPS), self.chance.randrange(2)
        if its.producer.version < 2:
            error = its.producer.add_offsets(group)
            assert error == ("CONCURRENT_TRANSACTIONS" if waits else "NONE"), error
        self.written += 1
        error = its.producer.commit_offset(self.written, "t", index, group)
        assert error == ("CONCURRENT_TRANSACTIONS" if waits else "NONE"), error
        if not waits:
            self.commits[group, index].append((self.written, self.open(its)))

    def end(self, its: Id) -> None:
        commit = self.chance.random() < 0.7
        pair = its.producer.pair
        if its.transaction is None:
            if its.producer.version < 2:
                its.producer.end(commit=commit)
            elif its.is_ready:
                # A client that bumps the epoch may abort a transaction without partitions.
                waits = self.waits_for_leader(its)
                error = its.producer.end(commit=commit)
                assert error == ("PRODUCER_FENCED" if waits else self.end_of_empty(commit)), error
            return
        error = its.producer.end(commit=commit)
        assert error == "NONE", error
        self.finish(its, "committed" if commit else "aborted")
        its.last_end, its.pair_after_end = (pair, commit), its.producer.pair

    def end_of_empty(self, commit: bool) -> str:
        return "INVALID_TXN_STATE" if commit else "NONE"

    # Repeated requests, and requests of fenced producers

    def repeat_produce(self, its: Id) -> None:
        """Sends a batch of the open transaction again; the log must store the batch only once."""
        if its.transaction is None or its.last_written is not its.transaction:
            return
        error = its.producer.produce_again()
        assert error in ("NONE", "NOT_LEADER_OR_FOLLOWER"), error
        assert error == "NONE" or self.stopped is not None

    def repeat_end(self, its: Id) -> None:
        """Sends the last EndTxn again, as after a lost response.

        If the client is older than KIP-890, does this only while no transaction is open.
        """
        if its.last_end is None or (its.producer.version < 2 and its.transaction is not None):
            return
        pair, commit = its.last_end
        twin = Producer(self.play, its.producer.transactional_id, version=its.producer.version)
        twin.producer_id, twin.epoch = pair
        error = twin.end(commit=commit)
        if its.is_ready and its.producer.pair == its.pair_after_end:
            expected = "CONCURRENT_TRANSACTIONS" if self.waits_for_leader(its) else "NONE"
            if its.transaction is not None:
                expected = "PRODUCER_FENCED"
            assert error == expected, error
            if error == "NONE" and twin.version >= 2:
                assert twin.pair == its.producer.pair

    def zombie(self, its: Id) -> None:
        """Sends a random request of a fenced producer, which must fail.

        Sends no InitProducerId while a transaction is open: as in Kafka, the coordinator would
        abort the transaction before it compares the epochs.
        """
        if not its.fenced:
            return
        producer = self.chance.choice(its.fenced)
        requests = [
            lambda: producer.produce("t", 0, "zombie"),
            lambda: producer.add(("t", 0)),
            lambda: producer.add_offsets("g"),
            lambda: producer.commit_offset(-5, "t", 0, "g"),
            lambda: producer.end(commit=True),
            lambda: producer.end(commit=False),
        ]
        if its.transaction is None:
            requests.append(lambda: producer.init(continues=True))
        error = self.chance.choice(requests)()
        assert error not in ("NONE", "TRANSACTION_ABORTABLE"), error

    # Writes without a transaction

    def write_plainly(self, its: Id) -> None:
        place = self.chance.choice(PLACES)
        if not self.is_led(place):
            return
        self.written += 1
        value = f"{self.written}.plain"
        data = PartitionProduceData(index=place[1], records=batch_bytes(value=value.encode()))
        request = ProduceRequest(
            acks=-1, topic_data=[TopicProduceData(name=place[0], partition_data=[data])]
        )
        leader = self.play.partition(*place).leader_and_isr.leader
        (found,) = self.play.send(request, 9, leader).responses[0].partition_responses
        assert found.error_code == 0
        self.log[place].append((value, None))

    def commit_plainly(self, its: Id) -> None:
        group, index = self.chance.choice(GROUPS), self.chance.randrange(2)
        self.written += 1
        committed = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=self.written, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=[committed])]
        )
        node = self.play.state.coordinator(CoordinatorType.GROUP, group)
        (found,) = self.play.send(request, 8, node).topics[0].partitions
        assert name_of(found.error_code) == "NONE"
        self.commits[group, index].append((self.written, None))

    # The cluster

    def move(self, its: Id) -> None:
        """Makes another node the leader of a partition, perhaps of a coordinator's topic."""
        topic = self.chance.choice(("t", OFFSETS_TOPIC, "__transaction_state"))
        if self.play.state.topics.get(topic) is None:
            return
        partitions = self.play.state.topics.named(topic).partitions
        partition = self.chance.choice(partitions)
        node = self.chance.choice(partition.leader_and_isr.in_sync)
        self.play.state.move_leader(topic, partition.index, node)

    def stop_or_start(self, its: Id) -> None:
        """Stops a node, or starts the stopped node.

        While a node is stopped, one partition of s has no leader.
        """
        if self.stopped is None:
            self.stopped = self.chance.choice((1, 2, 3))
            self.play.state.stop(self.stopped)
        else:
            self.play.state.start(self.stopped)
            self.stopped = None
            self.play.latest("t")  # a request, so that the markers are written now
            for each in self.ids:
                each.unmarked.clear()

    # The oracle

    def check(self) -> None:
        """Compares all partitions and groups with the oracle."""
        for place in PLACES:
            if self.is_led(place):
                self.check_partition(place)
        for group in GROUPS:
            self.check_group(group)

    def check_partition(self, place: tuple[str, int]) -> None:
        log = self.log[place]
        assert self.play.read(*place, committed=False) == [value for value, _ in log]
        expected = []
        first_open = None
        for value, transaction in log:
            if transaction is not None and transaction.outcome == "open":
                first_open = value
                break
            if transaction is None or transaction.outcome == "committed":
                expected.append(value)
        assert self.play.read(*place) == expected
        partition = self.play.partition(*place)
        stable = partition.log.end_offset
        if first_open is not None:
            stable = next(
                record.offset
                for batch in partition.log
                if not batch.is_control
                for record in batch.records()
                if record.value == first_open.encode()
            )
        assert self.play.latest(*place) == partition.last_stable_offset == stable
        assert self.play.fetch(*place, committed=True).last_stable_offset == stable

    def check_group(self, group: str) -> None:
        expected: dict[str, int] = {}
        unstable = set()
        for index in (0, 1):
            for offset, transaction in self.commits[group, index]:
                if transaction is None or transaction.outcome == "committed":
                    expected[f"t-{index}"] = offset
                elif transaction.outcome == "open":
                    unstable.add(f"t-{index}")
        assert self.play.offsets(group) == expected
        stable = self.play.offsets(group, require_stable=True)
        assert stable == {
            name: "UNSTABLE_OFFSET_COMMIT" if name in unstable else offset
            for name, offset in expected.items()
        }


async def run(seed: int) -> None:
    schedule = Schedule(seed)
    try:
        await schedule.run()
    except AssertionError as error:
        error.add_note(f"seed {seed}: {', '.join(schedule.steps[-12:])}")
        raise


@pytest.mark.parametrize("first", rest_slow(range(0, SCHEDULES, 10), 1, 2))
async def test_consumers_see_exactly_the_committed_transactions(first: int) -> None:
    for seed in range(first, first + 10):
        await run(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(SCHEDULES, 20 * SCHEDULES, 50))
async def test_many_schedules(first: int) -> None:
    for seed in range(first, first + 50):
        await run(seed)
