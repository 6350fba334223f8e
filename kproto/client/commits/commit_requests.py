"""Which offsets a commit is of, decided when it is its turn, and the state that knows them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ..metadata.cluster import TopicPartition
from .requests import ToCommit

__all__ = ["CommitKind", "CommitRequest", "CommittableOffsets"]


class CommitKind(Enum):
    """Which offsets are committed."""

    DUE = "processed offsets and start offsets that were not committed yet, or long ago"
    PROCESSED = "the same for an explicit commit, which also overwrites an explicit one before"
    START_OFFSETS = "the offsets at which partitions without a commit started"
    EXPLICIT = "the offsets that the user gives"


class CommitRequest(NamedTuple):
    """A commit; without `states`, those of revoked partitions, of all that can be committed then.

    `metadata` takes the place of that of PROCESSED offsets. `assignment_epochs` are those under
    which EXPLICIT offsets were returned, and `baselines` what was processed then: once they are
    committed, only later records count.
    """

    kind: CommitKind
    states: Mapping[TopicPartition, Any] | None = None
    metadata: str = ""
    offsets: Mapping[TopicPartition, ToCommit] = {}
    assignment_epochs: Mapping[TopicPartition, int | None] | None = None
    baselines: Mapping[TopicPartition, tuple[Any, int]] = {}


class CommittableOffsets(Protocol):
    """What the committer asks and tells of partitions: `fetch.subscription_state` implements it."""

    def offsets_to_commit(
        self, request: CommitRequest, now: float
    ) -> Mapping[TopicPartition, ToCommit]:
        """Returns the offsets of a commit whose turn it is."""
        ...

    def assignment_epoch_of(self, tp: TopicPartition) -> int | None:
        """Returns the assignment epoch of a partition; None if it cannot be committed."""
        ...

    def on_committed(
        self, request: CommitRequest, offsets: Mapping[TopicPartition, ToCommit], now: float
    ) -> None:
        """The broker has committed these."""
        ...

    def on_metadata_too_large(self, length: int) -> None:
        """The broker refused a metadata of incomplete offsets of that length."""
        ...
