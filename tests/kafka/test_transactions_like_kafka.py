"""Tests that the embedded broker answers transactional producers as a real broker does.

Random producers share two transactional ids, so that they fence each other, repeat requests and
send batches out of order. After each few requests, both brokers must have equal transactions, logs,
last stable offsets, aborted transactions, producers, offsets and records of `__transaction_state`.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

from kproto.broker import BrokerSettings
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker
from tests.support.selection import seeds
from tools.kafka import KafkaNode

from .transaction_sides import PARTITIONS, TransactionSide

#: Rounds of random producers in `make test`, `make exhaustive` and `make thorough`.
ROUNDS: Final = (3, 30, 150)
STEPS: Final = 60

OPERATIONS: Final = (
    *("init", "bump", "add", "produce", "produce", "produce", "repeat", "gap"),
    *("offsets", "commit", "end", "abort", "stale"),
)


@dataclass
class Brokers:
    """A real and the embedded broker."""

    release: str
    theirs: str
    ours: str


@pytest.fixture(
    scope="module", params=["4.4.0", pytest.param("3.9.2", marks=pytest.mark.exhaustive)]
)
def brokers(request: pytest.FixtureRequest) -> Iterator[Brokers]:
    release = request.param
    try:
        node = KafkaNode(release)
        node.start()
    except CANNOT_START as error:
        not_available(f"Kafka {release}", error)
    try:
        with threaded_broker(BrokerSettings(release=release)) as embedded:
            yield Brokers(release, node.bootstrap, embedded.bootstrap)
    finally:
        node.close()


class Step(NamedTuple):
    """A request of a producer: its operation, the producer's name, and its parameters."""

    operation: str
    name: str
    transactional_id: str
    #: Whether the producer has transaction version 2.
    is_v2: bool
    partition: int
    #: Whether to send an unusual request or version.
    is_odd: bool
    number: int
    epoch_shift: int


def random_step(draw: random.Random, ids: tuple[str, str], release: str) -> Step:
    name = draw.choice("abc")
    usual = ids[1] if name == "c" else ids[0]
    is_v2 = draw.random() < 0.5 and release == "4.4.0"
    return Step(
        draw.choice(OPERATIONS),
        name,
        draw.choice(ids) if draw.random() < 0.1 else usual,
        is_v2,
        draw.randrange(PARTITIONS),
        draw.random() < 0.1,
        draw.randrange(100),
        draw.choice([-2, -1, -1, 1]),
    )


class Player:
    """Sends the requests of random steps to one broker."""

    def __init__(self, side: TransactionSide, group: str) -> None:
        self.side = side
        self.group = group
        #: The next sequence by producer id, epoch and partition.
        self._sequences: dict[tuple[tuple[int, int], int], int] = {}

    def play(self, step: Step) -> object:
        """Returns the response to a step; None if the producer has no producer id yet."""
        side, name, its_id = self.side, step.name, step.transactional_id
        if step.operation == "init":
            return side.init(name, its_id, 1 if step.is_odd else 4)
        if name not in side.producers:
            return None
        producer_id, epoch = side.producers[name]
        if step.operation == "bump":
            shift = step.epoch_shift if step.is_odd else 0
            return side.init(name, its_id, 4, current=(producer_id, max(0, epoch + shift)))
        if step.operation == "add":
            return side.add_partitions(name, its_id, [step.partition], 1 if step.is_odd else 3)
        if step.operation in {"produce", "repeat", "gap"}:
            return self._produce(step)
        if step.operation == "offsets":
            return side.add_offsets(name, its_id, self.group, 1 if step.is_odd else 3)
        if step.operation == "commit":
            version = 5 if step.is_v2 else 3 + step.is_odd
            return side.commit_offset(
                name, its_id, self.group, step.partition, step.number, version
            )
        version = 5 if step.is_v2 else 3
        if step.operation != "stale":
            version = 1 if step.is_odd and not step.is_v2 else version
            return side.end(name, its_id, version, committed=step.operation == "end")
        side.producers[name] = producer_id, max(0, epoch + step.epoch_shift)
        result: Any = side.end(name, its_id, version, committed=step.number % 2 == 0)
        if result[0] != "NONE" or not step.is_v2:
            side.producers[name] = producer_id, epoch
        return result

    def _produce(self, step: Step) -> object:
        side = self.side
        key = side.producers[step.name], step.partition
        expected = self._sequences.get(key, 0)
        sequence = max(0, expected + {"produce": 0, "repeat": -1, "gap": 2}[step.operation])
        old = 9 if step.is_odd else 11
        result: Any = side.produce(
            step.name,
            step.transactional_id,
            step.partition,
            sequence,
            12 if step.is_v2 else old,
            is_transactional=not (step.is_odd and step.operation == "gap"),
        )
        if result[0] == "NONE" and step.operation != "repeat":
            self._sequences[key] = sequence + 1
        return result

    def state(self, ids: tuple[str, str]) -> list[object]:
        """Returns all state of this broker that must be equal on both brokers."""
        side = self.side
        found: list[object] = [side.describe(each) for each in ids]
        found += [side.transaction_log(each) for each in ids]
        for partition in range(PARTITIONS):
            found += [
                side.read(partition, committed=False),
                side.read(partition, committed=True),
                side.latest(partition, committed=True),
                side.active_producers(partition),
            ]
        for require_stable in (False, True):
            found.append(side.offsets(self.group, require_stable=require_stable))
        return found


@pytest.mark.parametrize("seed", seeds(*ROUNDS))
def test_random_producers_get_equal_responses(brokers: Brokers, seed: int) -> None:
    tag = uuid.uuid4().hex[:8]
    ids, group = (f"{tag}-x", f"{tag}-y"), f"{tag}-g"
    draw = random.Random(seed)
    theirs, ours = (
        Player(TransactionSide(bootstrap, f"t-{tag}"), group)
        for bootstrap in (brokers.theirs, brokers.ours)
    )
    played: list[object] = []
    try:
        for player in (theirs, ours):
            player.side.prepare(ids, [group])
        for index in range(STEPS):
            step = random_step(draw, ids, brokers.release)
            expected, found = theirs.play(step), ours.play(step)
            played.append((step, expected))
            assert found == expected, (seed, played[-10:])
            if index % 5 == 4 or index == STEPS - 1:
                assert ours.state(ids) == theirs.state(ids), (seed, played[-10:])
    finally:
        theirs.side.close()
        ours.side.close()
