"""Produce (0), v0 to v13.

v0-v2   message sets of magic 0 and 1, or one record batch; v1 throttle time, v2 log append time in
        the response
v3      record batches, transactional id (KIP-98)
v4      KAFKA_STORAGE_ERROR may be answered; older versions get NOT_LEADER_OR_FOLLOWER for it
v5      log start offset in the response
v7      zstd (KIP-110)
v8      record errors and an error message in the response (KIP-467)
v9      flexible
v10     the current leader in the response, for errors about leaders (KIP-951)
v11-12  TRANSACTION_ABORTABLE; partitions join a transaction by being written to (KIP-890)
v13     topics by id (KIP-516)

Message sets are stored as record batches with the same codec, as by Kafka up to 3.9 (4.0 lists
v0-v2 and refuses them); without a whole message they are a success with offset -1, as there.

Left out: transactions (a transactional batch is answered with INVALID_TXN_STATE, as one outside a
transaction is); `current_leader`, for whoever asked another node than the leader; `record_errors`,
since records are mostly not decoded: the message names the first that was refused.
"""

from __future__ import annotations

from ...messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ...messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..context import Context
from ..decisions import CloseConnection
from ..refusal import refusal
from ..registry import handles
from ..storage.appending import append_records

_NO_OFFSET = -1
_FIRST_VERSION_BY_ID = 13
#: Before this version, Kafka says NOT_LEADER_OR_FOLLOWER for KAFKA_STORAGE_ERROR.
_FIRST_VERSION_OF_STORAGE_ERROR = 4
_STORAGE_ERROR = code_of("KAFKA_STORAGE_ERROR")


@handles(ProduceRequest, versions=range(14))
def produce(context: Context, request: ProduceRequest, version: int) -> ProduceResponse | None:
    """Append every partition's batch; acks=0 gets no answer, or on an error no connection."""
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _partition(context, request, topic, data, version)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    if request.acks != 0:
        return response
    for answered in response.responses:
        for partition in answered.partition_responses:
            if partition.error_code:
                raise CloseConnection(f"a Produce with acks=0 failed: {partition.error_message}")
    return None


def _partition(
    context: Context,
    request: ProduceRequest,
    topic: TopicProduceData,
    data: PartitionProduceData,
    version: int,
) -> PartitionProduceResponse:
    try:
        if request.acks not in (-1, 0, 1):
            raise refusal("INVALID_REQUIRED_ACKS", f"acks is {request.acks}; it is -1, 0 or 1")
        found = context.cluster.topics.asked(
            topic.name, topic.topic_id, by_id=version >= _FIRST_VERSION_BY_ID
        )
        partition = found.partition(data.index)
        found.check_leader(data.index, context.endpoint.node_id)
        now_ms = context.clock.now_ms()
        if not context.cluster.room.has(len(data.records or b"")):
            context.cluster.topics.keep_retention(now_ms)
        appended = append_records(partition, found.config, data.records, version, now_ms)
        start_offset = found.kept(data.index, now_ms).log.start_offset
    except BrokerResponseError as error:
        return PartitionProduceResponse(
            index=data.index,
            error_code=_code_known_to(version, error.code),
            base_offset=_NO_OFFSET,
            error_message=error.detail,
        )
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=start_offset,
    )


def _code_known_to(version: int, code: int) -> int:
    """The error code, or the one that older clients know in its place."""
    if code == _STORAGE_ERROR and version < _FIRST_VERSION_OF_STORAGE_ERROR:
        return code_of("NOT_LEADER_OR_FOLLOWER")
    return code
