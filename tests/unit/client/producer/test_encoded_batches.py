"""Tests that batches that the caller has encoded keep their order among other batches."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.client import Client, DeliveryError, EncodedRecords
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.errors import EncodeError
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, Stored, produced, quick

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=2_000)

#: Two records of magic 2 (KIP-98): no key, one byte of value, no headers.
TWO = EncodedRecords(b"\x0e\x00\x00\x00\x01\x02x\x00\x0e\x00\x00\x02\x01\x02y\x00", 2, 7)


async def test_encoded_batch_follows_earlier_records() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        stored = Stored(broker)
        async with client.producer(linger_ms=1_000) as producer:
            await producer.enqueue("t", b"before")
            assert (await (await producer.send_batch("t", 0, TWO))) == ("t", 0, 1, 7)
        assert stored.values() == [b"before", b"x", b"y"]


async def test_same_bytes_are_sent_again() -> None:
    sent: list[bytes] = []

    def answer(asked: ReceivedRequest) -> Any:
        request = asked.message
        assert isinstance(request, ProduceRequest)
        sent.append(request.topic_data[0].partition_data[0].records or b"")
        return produced(asked) if len(sent) > 2 else HANG_UP

    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = answer
        async with client.producer() as producer:
            await (await producer.send_batch("t", 0, TWO))
    assert len(sent) == 3
    assert len(set(sent)) == 1


async def test_failed_batch_has_all_its_records() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ProduceRequest] = lambda asked: produced(asked, error_code=29)
        async with client.producer() as producer:
            delivery = await producer.send_batch("t", 0, TWO)
            with pytest.raises(DeliveryError) as raised:
                await delivery
            assert delivery.failed() == [0, 1]
            assert [each.value for each in raised.value.records] == [b"x", b"y"]


async def test_invalid_batch_is_refused() -> None:
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, QUICK) as client,
        client.producer() as producer,
    ):
        with pytest.raises(EncodeError, match="no partition 5"):
            await producer.send_batch("t", 5, TWO)
        with pytest.raises(EncodeError, match="at least one record"):
            await producer.send_batch("t", 0, EncodedRecords(b"", 0))
