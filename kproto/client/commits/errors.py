"""Errors that the client itself raises for commits and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition, format_partitions

__all__ = ["CommitFailedError", "NoCommittedOffsetError"]


class CommitFailedError(KprotoError):
    """The offsets were not committed, because this member does not own the partitions now.

    `name` is the broker's error; None if nothing was sent. `retriable` is True if a rebalance did
    not end in time: partitions that stay assigned can be committed after it. If it is False, other
    members read the partitions, from the last committed offset.
    """

    def __init__(self, reason: str, *, name: str | None = None, retriable: bool = False) -> None:
        self.reason = reason
        self.name = name
        self.retriable = retriable
        super().__init__(reason if name is None else f"{name}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the keywords, too, because the text alone does not rebuild the exception."""
        return type(self), (self.reason,), vars(self)


class NoCommittedOffsetError(KprotoError):
    """The group has no committed offset for `partitions`, and `start` is "none"."""

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        self.group_id = group_id
        self.partitions = sorted(partitions)
        super().__init__(
            f"group {group_id!r} has no commit for {format_partitions(self.partitions)}, and start "
            "is 'none': commit offsets for them, seek there in on_assigned, or give another start"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles both arguments, because the text alone does not rebuild the exception."""
        return type(self), (self.group_id, self.partitions), vars(self)
