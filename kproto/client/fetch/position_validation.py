"""Logs that have lost their end (KIP-320): what to ask a leader, and what its answer means.

After an unclean election records that were read may be gone, and others stand at their offsets. A
reader knows the leader epoch of the last record that it read; the leader tells where that epoch
ends in its log. What was read behind that has diverged. Plain functions on plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

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
    "AskedEpoch",
    "EpochEnd",
    "LogTruncatedError",
    "epoch_ends",
    "epochs_request",
]

#: Earlier versions of OffsetForLeaderEpoch are for brokers: they ask for rights on the cluster.
FIRST_EPOCHS_VERSION: Final = 3


class AskedEpoch(NamedTuple):
    """`last` is the epoch of the last record read, `current` that of the leader who is asked."""

    last: int
    current: int


class EpochEnd(NamedTuple):
    """The largest epoch up to the one asked for, and the offset behind its last record.

    Both are -1 where the leader knows of no such epoch.
    """

    epoch: int
    offset: int

    @property
    def is_known(self) -> bool:
        """Whether the leader could tell."""
        return self.epoch >= 0 and self.offset >= 0


class LogTruncatedError(KprotoError):
    """Records that were read are gone: the log of a partition has lost its end (KIP-320).

    `position` is the offset behind the last record handed out; those from `diverging_offset` on
    are gone, and others may stand there. It is None where the leader cannot tell.
    """

    def __init__(
        self, topic: str, partition: int, position: int, diverging_offset: int | None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.diverging_offset = diverging_offset
        if diverging_offset is None:
            what = f"what was read before offset {position} is not in its log any more"
            advice = "its leader cannot tell where its log begins to differ"
        else:
            what = (
                f"offsets {diverging_offset} to {position - 1}, which were handed out, are gone, "
                "and others may stand there"
            )
            advice = f"begin another consumer there (diverging_offset, {diverging_offset})"
        super().__init__(
            f"{topic}[{partition}]: its log was truncated: {what}; {advice}, or one that starts at "
            "'earliest' or 'latest', which goes on by itself"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Several arguments, so that an exception cannot be pickled by its text alone."""
        arguments = (self.topic, self.partition, self.position, self.diverging_offset)
        return type(self), arguments, vars(self)


def epochs_request(partitions: Mapping[TopicPartition, AskedEpoch]) -> OffsetForLeaderEpochRequest:
    """Ask one leader where epochs of its partitions end."""
    by_topic: dict[str, list[OffsetForLeaderPartition]] = {}
    for (topic, partition), epoch in partitions.items():
        asked = OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=epoch.current, leader_epoch=epoch.last
        )
        by_topic.setdefault(topic, []).append(asked)
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(topic=topic, partitions=asked) for topic, asked in by_topic.items()
        ],
    )


def epoch_ends(
    response: OffsetForLeaderEpochResponse,
) -> Iterator[tuple[TopicPartition, EpochEnd | BrokerResponseError]]:
    """Where the epoch of each partition of a response ends, or what is wrong with it."""
    for topic in response.topics:
        for part in topic.partitions:
            tp = (topic.topic, part.partition)
            if part.error_code:
                what = f"asking where a leader epoch of {topic.topic}[{part.partition}] ends"
                yield tp, error_of_code(part.error_code, what)
            else:
                yield tp, EpochEnd(part.leader_epoch, part.end_offset)
