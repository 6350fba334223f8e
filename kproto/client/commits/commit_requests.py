"""Commit requests of the consumer, and the interface that supplies the offsets to commit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ..metadata.cluster import TopicPartition
from .offset_requests import OffsetAndMetadata

__all__ = ["CommitKind", "CommitOffsetSource", "CommitRequest"]


class CommitKind(Enum):
    """Distinguishes commits by the offsets that they commit."""

    DUE = "processed offsets and start offsets that are not committed, or were an hour ago"
    TRANSACTION = "the offsets of DUE, for a transaction of `run`"
    PROCESSED = "processed offsets, for `commit()`; they also overwrite an earlier explicit commit"
    START_OFFSETS = "the offsets at which partitions without a commit started"
    EXPLICIT = "the offsets that the user passes"


class CommitRequest(NamedTuple):
    """A commit, which the committer sends after earlier commits.

    An EXPLICIT commit has `offsets`, and data that was read when the user called `commit`:
    `assignment_epochs` has the assignment epoch of each partition, and `baselines` has the state
    and the processed offset of each partition. After the commit, auto-commit skips each of these
    partitions until its processed offset changes.

    The offsets of the other kinds are determined when the commit is sent. `states` are the
    partitions to commit, None for all partitions that can be committed at that time. `metadata`
    replaces the metadata of PROCESSED offsets.
    """

    kind: CommitKind
    states: Mapping[TopicPartition, Any] | None = None
    metadata: str = ""
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = {}
    assignment_epochs: Mapping[TopicPartition, int | None] | None = None
    baselines: Mapping[TopicPartition, tuple[Any, int]] = {}


class CommitOffsetSource(Protocol):
    """Supplies offsets to the committer; `fetch.subscription_state` implements it."""

    def offsets_to_commit(
        self, request: CommitRequest, now: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets that `request` commits now."""
        ...

    def assignment_epoch_of(self, tp: TopicPartition) -> int | None:
        """Returns the assignment epoch of a partition; None if its offsets cannot be committed."""
        ...

    def on_committed(
        self,
        request: CommitRequest,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        now: float,
    ) -> None:
        """Stores the offsets that the broker has committed."""
        ...

    def on_metadata_too_large(self, length: int) -> None:
        """Shortens metadata in later commits: metadata of `length` characters was refused."""
        ...
