"""Errors that the client itself raises for commits and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable

from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition, format_partitions

__all__ = ["CommitFailedError", "NoCommittedOffsetError"]


class CommitFailedError(KprotoError):
    """The offsets were not committed, because this member may not commit the partitions now.

    `name` is the name of the broker's error, None if no broker has refused the commit. `retriable`
    is True if a rebalance did not end in time: after the rebalance, the member can commit the
    partitions that stay assigned. If `retriable` is False, other members may already read the
    partitions from the last committed offset.
    """

    def __init__(self, reason: str, *, name: str | None = None, retriable: bool = False) -> None:
        self.reason = reason
        self.name = name
        self.retriable = retriable
        super().__init__(reason if name is None else f"{name}: {reason}")


class NoCommittedOffsetError(KprotoError):
    """The group has no committed offset for `partitions`, and `start` is "none"."""

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        self.group_id = group_id
        self.partitions = sorted(partitions)
        super().__init__(
            f"group {group_id!r} has no commit for {format_partitions(self.partitions)}, and start "
            "is 'none': commit offsets for them, seek them in on_assigned, or set another start"
        )
