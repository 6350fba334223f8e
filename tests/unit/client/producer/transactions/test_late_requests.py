"""Tests that a Produce request that reaches the leader after the end of its transaction is refused.

The request timed out at the client while the request waited at a frozen leader.
"""

from __future__ import annotations

import asyncio

import pytest

from kproto import Client, DeliveryError
from kproto.broker import Cluster
from kproto.broker.faults import Close, Delay
from kproto.messages import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import error_code
from tests.support.cancelling import run_until_cancelled
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    committed,
    scene,
    state_of,
    written,
)
from tests.unit.client.scripted_broker import quick

SETTINGS = quick(
    metadata_wait_ms=300,
    delivery_timeout_ms=500,
    request_timeout_ms=400,
)


async def send_late(client: Client, request: ReceivedRequest) -> str:
    """Sends the request again; returns the error of its partition."""
    assert isinstance(request.message, ProduceRequest)
    response = await client.request(request.message, version=request.version)
    return error_code(response.responses[0].partition_responses[0].error_code).name


@BOTH_VERSIONS
async def test_late_request_is_refused_after_the_abort_and_in_the_next_transaction(
    version: int,
) -> None:
    late: list[ReceivedRequest] = []

    def lose(request: ReceivedRequest) -> Close:
        late.append(request)
        return Close()

    async with scene(version, SETTINGS) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            control = broker.control(lose, request=ProduceRequest)
            with pytest.raises(DeliveryError):
                async with producer.transaction():
                    await producer.send("t", b"late")
            broker.remove_control(control)
            refused = "INVALID_PRODUCER_EPOCH" if version else "TRANSACTION_ABORTABLE"
            assert await send_late(client, late[0]) == refused
            async with producer.transaction():
                await producer.send("t", b"2")
                assert await send_late(client, late[0]) == "INVALID_PRODUCER_EPOCH"
        assert await committed(client) == await written(client) == [b"2"]


@BOTH_VERSIONS
async def test_request_in_flight_at_a_cancelled_abort_is_refused(version: int) -> None:
    late: list[ReceivedRequest] = []
    received = asyncio.Event()
    settings = quick(
        metadata_wait_ms=300,
        delivery_timeout_ms=30_000,
        error_flush_ms=5_000,
        cancelled_close_ms=100,
    )

    def delay(request: ReceivedRequest) -> Delay:
        late.append(request)
        received.set()
        return Delay(60_000)

    async with scene(version, settings, nodes=2, partitions=2) as (cluster, client):
        assert isinstance(cluster, Cluster)
        producer = client.producer(transactional_id=ID)
        async with producer.transaction():
            await producer.send("t", b"1")
        # EndTxn must not wait behind the delayed Produce, so it goes to another node.
        node = cluster.coordinator(ID, "transaction")
        partition = next(at for at in (0, 1) if cluster.leader("t", at) != node)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"2", partition=1 - partition)
                cluster.control(delay, request=ProduceRequest, times=1)
                await producer.send("t", b"late", partition=partition)

        await run_until_cancelled(block(), received, "repeated")
        assert await state_of(client) == "CompleteAbort"
        async with Client(cluster.bootstrap, settings) as other:
            assert await send_late(other, late[0]) == "INVALID_PRODUCER_EPOCH"
            assert b"late" not in await written(other)
        await producer.close()
