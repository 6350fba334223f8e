"""Thousands of schedules against a model of a partition's leader (KIP-98).

What was acknowledged is stored once, in order, whatever was lost or refused on the way.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kproto.client.producer.accumulator import Accumulator
from kproto.client.producer.batch import Batch
from kproto.client.producer.producer_state import NO_PRODUCER_ID, ProducerIdAndEpoch
from kproto.wire.errors import KprotoError
from tests.unit.client.producer.accumulators import (
    LOST,
    SHOWN,
    accumulator,
    error,
    plan,
    sized,
)


@dataclass
class Leader:
    """A partition's leader as far as producers see it: epochs, numbers, and five remembered."""

    most_records: int = 100
    stored: list[bytes | None] = field(default_factory=list)
    states: dict[int, tuple[int, list[range]]] = field(default_factory=dict)

    def append(self, sent: Sent) -> str:
        if sent.identity == NO_PRODUCER_ID:
            return self.store(sent)
        producer_id, epoch = sent.identity
        seen, known = self.states.get(producer_id, (epoch, []))
        numbers = range(sent.sequence, sent.sequence + len(sent.values))
        if epoch < seen:
            return "INVALID_PRODUCER_EPOCH"
        if epoch > seen:
            known = [range(0)]
        if numbers in known[-5:]:
            return "DUPLICATE_SEQUENCE_NUMBER"
        if known and numbers.start != known[-1].stop:
            return "OUT_OF_ORDER_SEQUENCE_NUMBER"
        self.states[producer_id] = epoch, [*known, numbers]
        return self.store(sent)

    def store(self, sent: Sent) -> str:
        self.stored += sent.values
        return "NONE"


class Sent(NamedTuple):
    """The bytes of a batch, which the network may hold while the producer numbers it anew."""

    identity: ProducerIdAndEpoch
    sequence: int
    values: list[bytes | None]


def bytes_of(batch: Batch) -> Sent:
    return Sent(
        batch.identity, batch.sequence, [record.value for record in batch.content.records()]
    )


FAULTS = ["fine"] * 6 + ["not enough", "too late", "too large"]
FAULTS += ["lost before", "lost behind", "held"]


@given(seed=st.integers(0, 2**32), fault_rate=st.floats(0, 1), idempotent=st.booleans())
def test_what_is_acknowledged_is_stored_once_and_in_order(
    seed: int, fault_rate: float, idempotent: bool
) -> None:
    chance = random.Random(seed)
    loop = asyncio.new_event_loop()
    try:
        play(accumulator(loop, idempotent=idempotent), chance, fault_rate, idempotent)
    finally:
        loop.close()


def play(waiting: Accumulator, chance: random.Random, fault_rate: float, idempotent: bool) -> None:
    leader = Leader(most_records=chance.choice([1, 2, 100]))
    sent: list[Batch] = []  # what the leader has not seen yet, in the order of the connection
    answers: list[tuple[Batch, KprotoError | None]] = []
    batches: dict[Batch, list[bytes | None]] = {}  # with the values of their records
    now = 0.0
    to_come = 40
    next_id = 8
    written: dict[Batch, Sent] = {}
    held: list[Sent] = []  # copies of what the producer takes for lost, which the network holds
    while to_come or waiting.busy or held:
        now += chance.random() / 5
        SHOWN.now = now
        if to_come and chance.random() < 0.7:
            value = sized(40 - to_come, chance.choice([10, 30, 70]))
            batch, _ = waiting.add("t", 0, None, value, (), 0)
            batches.setdefault(batch, []).append(value)
            to_come -= 1
        waiting.expire_batches(now)
        found = plan(waiting, now, in_flight=len(sent) + len(answers))
        if found.needs_producer_id:
            waiting.producer_state.identity = ProducerIdAndEpoch(next_id, 0)
            next_id += 1
        for queues in found.requests.values():
            for queue in queues:
                batch = waiting.take(queue, 0)
                written[batch] = bytes_of(batch)
                sent.append(batch)
        if sent and chance.random() < 0.8:
            answers += answer(
                leader, sent, written, held if idempotent else None, chance, fault_rate
            )
        if held and chance.random() < 0.1:
            arrived = held.pop(0)
            if len(arrived.values) <= leader.most_records:
                leader.append(arrived)
        while answers and chance.random() < 0.6:
            batch, refused = answers.pop(chance.randrange(len(answers)) if not sent else 0)
            if refused is None:
                waiting.on_ack(batch)
            else:
                waiting.on_failure(batch, refused, now)
    check(leader, batches, once=idempotent)
    assert (waiting.buffered, waiting.busy, waiting.incomplete) == (0, {}, set()), "all is let go"


def answer(
    leader: Leader,
    sent: list[Batch],
    written: dict[Batch, Sent],
    held: list[Sent] | None,
    chance: random.Random,
    fault_rate: float,
) -> list[tuple[Batch, KprotoError | None]]:
    """What becomes of the oldest request; a lost connection takes all behind it along."""
    fault = chance.choice(FAULTS) if chance.random() < fault_rate else "fine"
    if fault == "held" and held is not None:
        held += [written[batch] for batch in sent]
    if fault == "held" or fault.startswith("lost"):
        lost = list(sent)
        if fault == "lost behind":
            for batch in lost[: chance.randint(1, len(lost))]:
                if batch.count <= leader.most_records:
                    leader.append(written[batch])
        sent.clear()
        return [(batch, LOST) for batch in lost]
    batch = sent.pop(0)
    if batch.count > leader.most_records:
        return [(batch, error("MESSAGE_TOO_LARGE"))]
    refusals = {
        "not enough": "NOT_ENOUGH_REPLICAS",
        "too large": "MESSAGE_TOO_LARGE",
    }
    if fault in refusals:
        return [(batch, error(refusals[fault]))]
    name = leader.append(written[batch])
    if name in ("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"):
        return [(batch, error(name))]
    if fault == "too late" and name == "NONE":
        return [(batch, error("NOT_ENOUGH_REPLICAS_AFTER_APPEND"))]
    return [(batch, None)]


def check(leader: Leader, batches: dict[Batch, list[bytes | None]], *, once: bool) -> None:
    values = [value for held in batches.values() for value in held]
    acknowledged = [
        value
        for batch, held in batches.items()
        for at, value in enumerate(held)
        if batch.failure(at) is None
    ]
    first_stored = list(dict.fromkeys(leader.stored))
    assert [v for v in first_stored if v in acknowledged] == acknowledged
    assert first_stored == [v for v in values if v in first_stored], "in the order given"
    if once:
        assert len(leader.stored) == len(first_stored), "nothing twice"
