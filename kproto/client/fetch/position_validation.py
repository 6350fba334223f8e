"""Truncated logs (KIP-320): the requests of OffsetForLeaderEpoch, and their responses.

After an unclean leader election, fetched records may be gone, and other records have their offsets.
A consumer sends the leader epoch of the last record that it fetched; the leader returns the offset
at which that epoch ends in the leader's log. Fetched records from that offset on have diverged.
Plain functions on plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ...messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ...messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, KprotoError
from ..metadata.cluster import TopicPartition

__all__ = [
    "FIRST_EPOCHS_VERSION",
    "EpochEnd",
    "LogTruncatedError",
    "RequestedEpoch",
    "epoch_ends",
    "epochs_request",
]

#: Earlier versions of OffsetForLeaderEpoch are for brokers: a client needs rights on the cluster to
#: send them.
FIRST_EPOCHS_VERSION: Final = 3


class RequestedEpoch(NamedTuple):
    """The epochs of one partition in an OffsetForLeaderEpoch request.

    `last` is the leader epoch of the last fetched record, and `current` is the epoch of the present
    leader.
    """

    last: int
    current: int


class EpochEnd(NamedTuple):
    """The largest leader epoch up to the requested epoch, and the offset at which this epoch ends.

    Epoch and offset are -1 if the log of the leader has no such epoch.
    """

    epoch: int
    offset: int

    @property
    def is_known(self) -> bool:
        """True if the leader knows the end of the requested epoch, or of an earlier epoch."""
        return self.epoch >= 0 and self.offset >= 0


class LogTruncatedError(KprotoError):
    """The log of a partition was truncated: returned records are gone, or may be gone (KIP-320).

    `position` is the offset after the last returned record. Records from `diverging_offset` on are
    gone, and other records may have their offsets. `diverging_offset` is None if the leader does
    not know where the logs diverge: then it is unknown which records are gone.
    """

    def __init__(
        self, topic: str, partition: int, position: int, diverging_offset: int | None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.diverging_offset = diverging_offset
        if diverging_offset is None:
            what = f"records that were returned before offset {position} are gone"
            advice = (
                "the leader cannot tell where the logs diverge: start another consumer at an offset"
            )
        else:
            what = (
                f"offsets {diverging_offset} to {position - 1}, which were returned, are gone, "
                "and other records may have them"
            )
            advice = f"start another consumer at diverging_offset, {diverging_offset}"
        super().__init__(
            f"{topic}[{partition}]: its log was truncated: {what}; {advice}, or with start "
            "'earliest' or 'latest', which resets the position by itself"
        )


def epochs_request(
    partitions: Mapping[TopicPartition, RequestedEpoch],
) -> OffsetForLeaderEpochRequest:
    """Returns the request that asks one leader at which offset each requested epoch ends."""
    by_topic: dict[str, list[OffsetForLeaderPartition]] = {}
    for (topic, partition), epoch in partitions.items():
        partition_data = OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=epoch.current, leader_epoch=epoch.last
        )
        by_topic.setdefault(topic, []).append(partition_data)
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(topic=topic, partitions=partition_data)
            for topic, partition_data in by_topic.items()
        ],
    )


def epoch_ends(
    response: OffsetForLeaderEpochResponse,
) -> Iterator[tuple[TopicPartition, EpochEnd | BrokerResponseError]]:
    """Yields each partition of a response, with the end of its epoch or its error."""
    for topic in response.topics:
        for part in topic.partitions:
            tp = (topic.topic, part.partition)
            if part.error_code:
                what = f"finding the end of a leader epoch of {topic.topic}[{part.partition}]"
                yield tp, error_of_code(part.error_code, what)
            else:
                yield tp, EpochEnd(part.leader_epoch, part.end_offset)
