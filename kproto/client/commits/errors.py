"""What goes wrong for a member of a group beside what brokers and connections do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition, named

__all__ = ["CommitFailedError", "NoCommittedOffsetError"]


class CommitFailedError(KprotoError):
    """Offsets were not committed, as the partitions are not this member's, or not at this moment.

    `name` is the broker's error, None where nothing was sent. `retriable` where a rebalance was
    waited for in vain: what stays assigned can be committed when it is over. Else others read the
    partitions, and the records come again, from where was committed last.
    """

    def __init__(self, reason: str, *, name: str | None = None, retriable: bool = False) -> None:
        self.reason = reason
        self.name = name
        self.retriable = retriable
        super().__init__(reason if name is None else f"{name}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Keywords, so that an exception cannot be pickled by its text alone."""
        return type(self), (self.reason,), vars(self)


class NoCommittedOffsetError(KprotoError):
    """The group has no commit for `partitions`, and the consumer was told not to guess."""

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        self.group_id = group_id
        self.partitions = sorted(partitions)
        super().__init__(
            f"group {group_id!r} has no commit for {named(self.partitions)}, and start is 'none': "
            "commit offsets for them, seek there in on_assigned, or give another start"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Several arguments, so that an exception cannot be pickled by its text alone."""
        return type(self), (self.group_id, self.partitions), vars(self)
