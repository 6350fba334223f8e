"""Deletes records before an offset: request and result as plain data. DeleteRecords (21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ...messages.delete_records_response import DeleteRecordsResponse
from ...protocol.error_codes import code_of
from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .calls import PartCall, by_topic, outcome

__all__ = ["delete_records_call"]

#: Why a broker refuses to delete records, by error code; DeleteRecords has no error message.
_REASONS: Final = {
    code_of("POLICY_VIOLATION"): "; the cleanup.policy of the topic does not include delete"
}


def delete_records_call(
    offsets: Mapping[TopicPartition, int],
) -> PartCall[TopicPartition, int]:
    """Returns the call that deletes the records before `offsets`; -1 is the high watermark.

    The result of a partition is its new log start offset.
    """

    def build(tps: Sequence[TopicPartition], left_ms: int) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=partition, offset=offsets[topic, partition]
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ],
            timeout_ms=left_ms,
        )

    def parts_of(request: DeleteRecordsRequest) -> list[TopicPartition]:
        return [
            (topic.name, each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        ]

    def read(
        response: DeleteRecordsResponse, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | KprotoError]:
        return {
            (topic.name, each.partition_index): outcome(
                each.error_code,
                f"deleting records of {topic.name}[{each.partition_index}]"
                + _REASONS.get(each.error_code, ""),
                None,
                each.low_watermark,
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return PartCall(
        "deleting records", build, read, parts_of=parts_of, changes=True, awaits_topics=True
    )
