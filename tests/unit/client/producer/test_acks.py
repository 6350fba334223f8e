"""Tests acknowledgements of one record and of many records."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

from kproto.client.producer.acks import Acks
from kproto.client.producer.batch import Ack, ProducerBatch
from kproto.client.producer.errors import DeliveryError
from kproto.client.producer_record import ProducerRecord
from kproto.records import GrowingBatch
from kproto.wire.errors import KprotoError


@pytest.fixture
async def batches() -> list[ProducerBatch]:
    """Returns three batches of two partitions, with two, three and one records."""
    loop = asyncio.get_running_loop()
    made = [ProducerBatch("t", at, loop.create_future(), GrowingBatch()) for at in (0, 1, 0)]
    for batch, count in zip(made, (2, 3, 1), strict=True):
        for at in range(count):
            batch.content.append(b"k%d" % at, b"v%d" % at, (), 1000 + at, 1000)
    return made


async def test_acknowledgements_have_the_order_of_the_records(batches: list[ProducerBatch]) -> None:
    first, second, third = batches
    acks = Acks()
    order = [(first, 0), (second, 0), (second, 1), (first, 1), (second, 2), (third, 0)]
    for batch, position in order:
        acks.add(batch, position)
    first.base_offset, second.base_offset, third.base_offset = 10, 20, 30
    second.log_append_time = 99
    wanted = [
        Ack("t", 0, 10, 1000),
        Ack("t", 1, 20, 99),
        Ack("t", 1, 21, 99),
        Ack("t", 0, 11, 1001),
        Ack("t", 1, 22, 99),
        Ack("t", 0, 30, 1000),
    ]
    assert len(acks) == 6
    assert list(acks) == wanted
    assert [acks[at] for at in range(-6, 6)] == wanted + wanted
    assert acks[1:5:2] == wanted[1:5:2]
    assert acks[::-1] == wanted[::-1]
    assert list(reversed(acks)) == wanted[::-1]
    assert wanted[3] in acks
    assert acks.index(wanted[4]) == 4
    assert acks.batches() == [first, second, third]
    assert repr(acks) == "<6 acknowledgements>"
    for outside in (6, -7):
        with pytest.raises(IndexError, match=f"6 acknowledgements, and none at {outside}"):
            acks[outside]


async def test_batch_may_contain_records_of_other_calls(batches: list[ProducerBatch]) -> None:
    (_, second, _) = batches
    second.base_offset = 5
    acks = Acks()
    acks.add(second, 0)
    acks.add(second, 2)
    assert [ack.offset for ack in acks] == [5, 7]


async def test_acks_equal_their_copies(batches: list[ProducerBatch]) -> None:
    (_, second, _) = batches
    second.base_offset = 5
    acks = Acks()
    acks.add_run(0, second, 0)
    acks.set_count(2)
    assert copy.copy(acks) == acks
    assert acks == pickle.loads(pickle.dumps(acks)) == [*acks]
    assert acks != [acks[0]]
    assert acks != (*acks,)


async def test_unknown_offset_is_minus_one(batches: list[ProducerBatch]) -> None:
    acks = Acks()
    acks.add(batches[0], 1)
    assert acks[0] == Ack("t", 0, -1, 1001)


async def test_undelivered_records_are_returned(batches: list[ProducerBatch]) -> None:
    first, second, third = batches
    acks = Acks()
    for batch, position in [(first, 0), (second, 0), (second, 2), (third, 0)]:
        acks.add(batch, position)
    first.future.set_result(KprotoError("failed"))
    second.future.set_result(None)
    third.future.set_result(KprotoError("failed"))
    assert acks.undelivered() == [
        ProducerRecord(b"v0", b"k0", (), 1000, 0),
        ProducerRecord(b"v0", b"k0", (), 1000, 0),
    ]


def test_delivery_error_has_the_count_and_the_cause() -> None:
    cause = KprotoError("the reason")
    error = DeliveryError("t", 3, [ProducerRecord(b"v")], cause)
    assert str(error) == "1 record for t[3] was not acknowledged: the reason"
    assert (error.topic, error.partition, error.cause) == ("t", 3, cause)
    assert isinstance(error, KprotoError)


@pytest.mark.parametrize(
    ("partitions", "target"),
    [
        ([3, 3, 3], "t[3]"),
        ([3, None, None], "t[3]"),
        ([3, 4, 3], "2 partitions of t"),
        ([3, 4, None], "t"),
    ],
)
def test_delivery_error_names_one_partition_only_if_all_records_have_it(
    partitions: list[int | None], target: str
) -> None:
    records = [ProducerRecord(b"v", partition=partition) for partition in partitions]
    error = DeliveryError("t", 3, records, KprotoError("the reason"))
    assert str(error) == f"3 records for {target} were not acknowledged: the reason"
