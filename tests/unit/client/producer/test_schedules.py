"""Tests the producer with random schedules against a model of a partition leader (KIP-98).

Each acknowledged record is stored in order, whichever messages are lost or refused. With
idempotence, each acknowledged record is stored once.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kproto.client.producer.accumulator import RecordAccumulator
from kproto.client.producer.batch import ProducerBatch
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
    """Checks epochs and sequence numbers as a partition leader does.

    Recognizes duplicates of the last five batches of a producer id.
    """

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
    """The producer id, sequence number and values that a batch had when it was sent.

    The producer may renumber the batch later.
    """

    identity: ProducerIdAndEpoch
    sequence: int
    values: list[bytes | None]


def bytes_of(batch: ProducerBatch) -> Sent:
    return Sent(
        batch.identity, batch.sequence, [record.value for record in batch.content.records()]
    )


FAULTS = ["none"] * 6 + ["not enough", "too late", "too large"]
FAULTS += ["request lost", "response lost", "delayed"]


@given(seed=st.integers(0, 2**32), fault_rate=st.floats(0, 1), idempotent=st.booleans())
def test_acknowledged_records_are_stored_once_and_in_order(
    seed: int, fault_rate: float, idempotent: bool
) -> None:
    chance = random.Random(seed)
    loop = asyncio.new_event_loop()
    try:
        play(accumulator(loop, idempotent=idempotent), chance, fault_rate, idempotent)
    finally:
        loop.close()


def play(
    accumulated: RecordAccumulator, chance: random.Random, fault_rate: float, idempotent: bool
) -> None:
    leader = Leader(most_records=chance.choice([1, 2, 100]))
    sent: list[ProducerBatch] = []  # batches not yet at the leader, in the order of the connection
    answers: list[tuple[ProducerBatch, KprotoError | None]] = []
    batches: dict[ProducerBatch, list[bytes | None]] = {}  # the values of their records
    now = 0.0
    remaining = 40
    next_id = 8
    written: dict[ProducerBatch, Sent] = {}
    delayed: list[Sent] = []  # copies in flight of batches that are lost for the producer
    while remaining or accumulated.active_queues or delayed:
        now += chance.random() / 5
        SHOWN.now = now
        if remaining and chance.random() < 0.7:
            value = sized(40 - remaining, chance.choice([10, 30, 70]))
            batch, _ = accumulated.add("t", 0, None, value, (), 0)
            batches.setdefault(batch, []).append(value)
            remaining -= 1
        accumulated.expire_batches(now)
        found = plan(accumulated, now, in_flight=len(sent) + len(answers))
        if found.needs_producer_id:
            accumulated.producer_state.identity = ProducerIdAndEpoch(next_id, 0)
            next_id += 1
        for queues in found.requests.values():
            for queue in queues:
                batch = accumulated.take(queue, 0)
                written[batch] = bytes_of(batch)
                sent.append(batch)
        if sent and chance.random() < 0.8:
            answers += answer(
                leader, sent, written, delayed if idempotent else None, chance, fault_rate
            )
        if delayed and chance.random() < 0.1:
            arrived = delayed.pop(0)
            if len(arrived.values) <= leader.most_records:
                leader.append(arrived)
        while answers and chance.random() < 0.6:
            batch, refused = answers.pop(chance.randrange(len(answers)) if not sent else 0)
            if refused is None:
                accumulated.on_ack(batch)
            else:
                accumulated.on_failure(batch, refused, now)
    check(leader, batches, once=idempotent)
    assert (accumulated.buffered, accumulated.active_queues, accumulated.incomplete) == (
        0,
        {},
        set(),
    ), "everything is released"


def answer(
    leader: Leader,
    sent: list[ProducerBatch],
    written: dict[ProducerBatch, Sent],
    delayed: list[Sent] | None,
    chance: random.Random,
    fault_rate: float,
) -> list[tuple[ProducerBatch, KprotoError | None]]:
    """Draws a fault, and answers the oldest batch in `sent`; removes it from `sent`.

    If the fault loses the connection, all batches in `sent` fail. Returns each answered batch with
    its error or None. `delayed` gets copies of batches that reach the leader later.
    """
    fault = chance.choice(FAULTS) if chance.random() < fault_rate else "none"
    if fault == "delayed" and delayed is not None:
        delayed += [written[batch] for batch in sent]
    if fault == "delayed" or fault.endswith(" lost"):
        lost = list(sent)
        if fault == "response lost":
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


def check(leader: Leader, batches: dict[ProducerBatch, list[bytes | None]], *, once: bool) -> None:
    values = [value for own in batches.values() for value in own]
    acknowledged = [
        value
        for batch, own in batches.items()
        for at, value in enumerate(own)
        if batch.failure(at) is None
    ]
    first_stored = list(dict.fromkeys(leader.stored))
    assert [v for v in first_stored if v in acknowledged] == acknowledged
    assert first_stored == [v for v in values if v in first_stored], "in the order of the calls"
    if once:
        assert len(leader.stored) == len(first_stored), "no duplicates"
