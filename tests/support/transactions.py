"""Sends the requests of a transaction to a real broker one by one, at the test's call."""

from __future__ import annotations

from typing import Any

import kproto
from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kproto.messages.base import Request
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.protocol.error_codes import raise_for_code

__all__ = ["Transaction"]

TIMEOUT_MS = 60_000


class Transaction:
    """Sends the requests of a transactional producer, and retries as a client does.

    `begin` sets `producer_id` and `producer_epoch`.
    """

    def __init__(self, client: kproto.Client, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self._client = client

    async def begin(self) -> None:
        """Sends InitProducerId, and stores the producer id and epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        answer = await self._ask(request, 4, lambda it: it.error_code)
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    async def add_partition(self, topic: str, partition: int) -> None:
        """Sends AddPartitionsToTxn."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )
        await self._ask(
            request,
            3,
            lambda it: (
                it.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )

    async def commit_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Sends AddOffsetsToTxn and TxnOffsetCommit."""
        added = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        await self._ask(added, 3, lambda it: it.error_code)
        part = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        await self._ask(request, 3, lambda it: it.topics[0].partitions[0].error_code)

    async def end(self, *, committed: bool) -> None:
        """Sends EndTxn; the coordinator writes the markers after it has responded."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        await self._ask(request, 3, lambda it: it.error_code)

    async def _ask(self, request: Request[Any], version: int, code_of: Any) -> Any:
        async def ask() -> Any:
            answer = await self._client.request(request, version=version)
            raise_for_code(code_of(answer), type(request).__name__)
            return answer

        return await self._client.retrying(ask)
