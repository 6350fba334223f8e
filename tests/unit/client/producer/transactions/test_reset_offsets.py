"""Tests transactions after another client has moved or deleted the committed offsets."""

from __future__ import annotations

import pytest

from kproto import Client
from kproto.messages import OffsetDeleteRequest
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.unit.client.producer.transactions.transactional import BOTH_VERSIONS, ID, scene


async def delete_offset(client: Client) -> None:
    topic = OffsetDeleteRequestTopic(
        name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    response = await client.request(OffsetDeleteRequest(group_id="g", topics=[topic]))
    assert response.error_code == 0
    assert response.topics[0].partitions[0].error_code == 0


@BOTH_VERSIONS
@pytest.mark.parametrize("is_deleted", [False, True], ids=["moved", "deleted"])
async def test_offsets_are_committed_again_after_a_reset_from_outside(
    version: int, *, is_deleted: bool
) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        async with client.producer() as plain:
            await plain.send_many("t", [b"0", b"1", b"2"])
        consumer = client.consumer([("t", 0)], group="g", start="earliest", auto_commit=False)
        async with consumer:
            for _ in range(2):
                polled = await consumer.poll(timeout_ms=5_000)
                assert [record.value for record in polled["t", 0]] == [b"0", b"1", b"2"]
                async with producer.transaction() as transaction:
                    await transaction.commit_offsets(consumer)
                offsets = await consumer.committed(("t", 0))
                committed = offsets["t", 0]
                assert committed is not None
                assert committed.offset == 3
                if is_deleted:
                    await delete_offset(client)
                else:
                    await client.commit_offsets("g", {("t", 0): 0})
                await consumer.seek_to_committed()
