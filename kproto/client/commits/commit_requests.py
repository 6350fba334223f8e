"""Commit requests of the consumer, and the interface that supplies the offsets to commit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ..metadata.cluster import TopicPartition
from .offset_requests import OffsetAndMetadata

__all__ = ["CommitKind", "CommitRequest", "CommittableOffsets"]


class CommitKind(Enum):
    """The offsets that a commit has."""

    DUE = "processed offsets and start offsets that were not committed yet, or long ago"
    PROCESSED = "the same, for an explicit commit; it also overwrites an earlier explicit commit"
    START_OFFSETS = "the offsets at which partitions without a commit started"
    EXPLICIT = "the offsets that the user passes"


class CommitRequest(NamedTuple):
    """A commit that waits for earlier ones; its offsets are read when it is sent.

    `states` are revoked partitions; with None the commit has all partitions that can be committed
    when it is sent. `metadata` replaces the metadata of PROCESSED offsets. EXPLICIT commits have
    `assignment_epochs`, those at the time of the call, and `baselines`, the processed offsets at
    that time. Auto-commit overwrites the explicit offset once a record after the baseline is
    processed.
    """

    kind: CommitKind
    states: Mapping[TopicPartition, Any] | None = None
    metadata: str = ""
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = {}
    assignment_epochs: Mapping[TopicPartition, int | None] | None = None
    baselines: Mapping[TopicPartition, tuple[Any, int]] = {}


class CommittableOffsets(Protocol):
    """Supplies offsets to the committer; `fetch.subscription_state` implements it."""

    def offsets_to_commit(
        self, request: CommitRequest, now: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets that `request` commits now."""
        ...

    def assignment_epoch_of(self, tp: TopicPartition) -> int | None:
        """Returns the assignment epoch of a partition; None if it cannot be committed."""
        ...

    def on_committed(
        self,
        request: CommitRequest,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        now: float,
    ) -> None:
        """Records the offsets that the broker has committed."""
        ...

    def on_metadata_too_large(self, length: int) -> None:
        """Shortens the metadata of later commits: the broker refused `length` characters."""
        ...
