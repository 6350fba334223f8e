"""`CommitState`: the last commits, and the time of the next commit; the actions for commit errors.

Does no I/O: callers pass the time, in seconds of the client's clock. `committer` sends commits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..core.group_errors import COMMIT_REFUSALS
from ..core.retry import Remedy, remedy_of_code
from ..metadata.cluster import TopicPartition
from .offset_requests import OffsetAndMetadata
from .processed_bitmap import has_bitmap

__all__ = [
    "RENEW_S",
    "CommitErrorAction",
    "CommitResult",
    "CommitState",
    "classify_results",
    "commit_error_action",
]

_NEVER: Final = float("inf")

#: An unchanged offset is committed again after this many seconds: the offsets of a group without
#: members expire (offsets.retention.minutes, a week by default), even if a consumer with manually
#: assigned partitions is still running.
RENEW_S: Final = 3_600.0


class CommitErrorAction(Enum):
    """The action of the committer after an error code of a commit."""

    RETRY = "the commit is retried after a backoff"
    RETRY_UNKNOWN_TOPIC = (
        "the commit is retried while the topic may be too new for the coordinator to know it"
    )
    REFUSED = "this member may not commit the partition: the member acts on the error"
    FAILED = "the commit fails; no retry helps"


#: The actions for error codes that need more than a plain retry or failure of the commit. After the
#: last two errors the committer retries with new topic ids, because the coordinator's metadata may
#: be older than the metadata of this client.
_ACTIONS: Final = {
    code_of(name): action
    for name, action in {
        **dict.fromkeys(COMMIT_REFUSALS, CommitErrorAction.REFUSED),
        "UNKNOWN_TOPIC_OR_PARTITION": CommitErrorAction.RETRY_UNKNOWN_TOPIC,
        "UNKNOWN_TOPIC_ID": CommitErrorAction.RETRY_UNKNOWN_TOPIC,  # KIP-516
    }.items()
}


def commit_error_action(code: int) -> CommitErrorAction:
    """Returns the action for an error code of a commit.

    If `_ACTIONS` has no row for the code, the commit is retried if Kafka calls the error retriable;
    otherwise the commit has failed.
    """
    known = _ACTIONS.get(code)
    if known is not None:
        return known
    return (
        CommitErrorAction.FAILED if remedy_of_code(code) is Remedy.FAIL else CommitErrorAction.RETRY
    )


class CommitResult(NamedTuple):
    """Holds the partitions that a commit committed, and the errors of the other partitions.

    Each error is in the field for the committer's action, such as `to_retry`.
    """

    committed: list[TopicPartition]
    to_retry: dict[TopicPartition, BrokerResponseError]
    unknown_topics: dict[TopicPartition, BrokerResponseError]
    refused: dict[TopicPartition, BrokerResponseError]
    failed: dict[TopicPartition, BrokerResponseError]


def classify_results(answers: Mapping[TopicPartition, BrokerResponseError | None]) -> CommitResult:
    """Returns the result of a commit; `answers` has the error of each partition, or None."""
    found = CommitResult([], {}, {}, {}, {})
    by_action = {
        CommitErrorAction.RETRY: found.to_retry,
        CommitErrorAction.RETRY_UNKNOWN_TOPIC: found.unknown_topics,
        CommitErrorAction.REFUSED: found.refused,
        CommitErrorAction.FAILED: found.failed,
    }
    for tp, error in answers.items():
        if error is None:
            found.committed.append(tp)
        else:
            by_action[commit_error_action(error.code)][tp] = error
    return found


class CommitState:
    """The last commit of each partition, and the start offsets of partitions without a commit.

    `next_at` is the time at which the next auto-commit is due, in seconds; infinity if none is due.
    If `is_transactional` is True, transactions of a producer commit the offsets, and the consumer
    commits only offsets that its user passes. `uncommitted` has the positions of revoked and lost
    partitions whose last returned records were not committed.
    """

    def __init__(self, interval_ms: int) -> None:
        self.is_transactional = False
        self.uncommitted: dict[TopicPartition, int] = {}
        self._interval_s = interval_ms / 1000
        self._last: dict[TopicPartition, tuple[OffsetAndMetadata, float]] = {}  # with its time
        self._start_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.next_at = _NEVER

    def start_interval(self, now: float) -> None:
        """Starts the interval to the next auto-commit."""
        self.next_at = now + self._interval_s

    def stop_interval(self) -> None:
        """Stops the interval: no auto-commit is due."""
        self.next_at = _NEVER

    def due(
        self,
        processed: Mapping[TopicPartition, OffsetAndMetadata],
        now: float,
        unchanged: Container[TopicPartition] = (),
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets of `processed` that are not committed yet.

        Returns a committed offset again `RENEW_S` after its commit. Ignores the `processed` offsets
        of `unchanged` partitions, because no record of these partitions was processed since the
        assignment or the last explicit commit.
        """
        found = {}
        for tp, its in processed.items():
            last, at = self._last.get(tp, (None, now))
            if last is None:
                if tp not in unchanged:
                    found[tp] = its
            elif tp in unchanged or _is_same(last, its):
                if now - at >= RENEW_S:
                    found[tp] = last._replace(topic_id=its.topic_id)
            else:
                found[tp] = its
        return found

    def is_committed(
        self, tp: TopicPartition, offset: int, topic_id: Uuid, baseline: int, now: float
    ) -> bool:
        """Returns True if `offset` needs no commit: `due` would leave it out.

        The commit of `offset` would have no metadata. `baseline` is the processed offset at the
        time of the assignment or of the last explicit commit: if `offset` is equal to `baseline`,
        no record was processed since that time.
        """
        if tp not in self._last:
            return offset == baseline
        last, at = self._last[tp]
        is_same = (last.offset, last.topic_id) == (offset, topic_id)
        return is_same and now - at < RENEW_S and not has_bitmap(last.metadata)

    def add_start_offset(self, tp: TopicPartition, its: OffsetAndMetadata) -> None:
        """Adds the start offset of `tp`; `start_offsets` returns it until `tp` has a commit."""
        self._start_offsets[tp] = its

    def start_offsets(
        self, tps: Container[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the start offset of each partition in `tps` for which no commit is known."""
        return {
            tp: its for tp, its in self._start_offsets.items() if tp in tps and tp not in self._last
        }

    def add_uncommitted(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Stores the uncommitted `offsets` of partitions that are not assigned any more."""
        self.uncommitted.update({tp: its.offset for tp, its in offsets.items()})

    def add_known(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now: float) -> None:
        """Adds offsets that the group had committed, and that the client fetched at `now`.

        Does not replace known offsets, such as offsets that this consumer has committed.
        """
        for tp, its in offsets.items():
            self._last.setdefault(tp, (its, now))

    def on_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now: float) -> None:
        """Stores the `offsets` that the broker has committed at `now`."""
        for tp, its in offsets.items():
            self._last[tp] = (its, now)
            self._start_offsets.pop(tp, None)

    def forget_committed(self, tps: Iterable[TopicPartition]) -> None:
        """Forgets the last commit of partitions whose committed offsets were fetched again.

        Another client may have moved or deleted these offsets. Start offsets stay.
        """
        for tp in tps:
            self._last.pop(tp, None)

    def forget(self, tps: Iterable[TopicPartition]) -> None:
        """Forgets partitions whose offsets other members can commit from now on."""
        for tp in tps:
            self._last.pop(tp, None)
            self._start_offsets.pop(tp, None)


def _is_same(last: OffsetAndMetadata, new: OffsetAndMetadata) -> bool:
    """Returns True if a commit of `new` would change nothing after the last commit, `last`.

    Compares the metadata only if the metadata of `last` or `new` is a bitmap: auto-commit does not
    replace metadata of the user.
    """
    has_incomplete = has_bitmap(new.metadata) or has_bitmap(last.metadata)
    is_other_metadata = has_incomplete and new.metadata != last.metadata
    return (last.offset, last.topic_id) == (new.offset, new.topic_id) and not is_other_metadata
