"""The state of one assigned partition: its fetch position, fetch state, epochs and commits.

Plain data: times are passed in. `subscription_state` owns the states of all partitions, and
`fetch_plan` decides when and from which broker each of them is fetched.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from enum import Enum
from typing import Final

from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import ZERO_UUID, Uuid
from ..commits.offset_requests import OffsetAndMetadata
from ..commits.processed_bitmap import ProcessedBitmap
from ..core.retry import Attempts, Remedy
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition
from ..settings import ClientSettings
from .fetch_options import OffsetSpec
from .fetch_requests import fetch_remedy
from .leader_epochs import EpochHistory

__all__ = [
    "NO_POSITION",
    "NO_REPLICA",
    "TRANSITIONS",
    "FetchState",
    "FetchStateEvent",
    "TopicPartitionState",
]

logger = logging.getLogger("kproto.client")

#: The position of a partition until it is found.
NO_POSITION: Final = -1

#: The preferred read replica of a response that names none: the consumer fetches from the leader.
NO_REPLICA: Final = -1

_LONG_AGO: Final = float("-inf")
_NEVER: Final = float("inf")

#: Errors of a deleted partition. The group leader notices the deletion, and revokes the partition.
_DELETED: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")


class FetchState(Enum):
    """The fetch state of a partition; the names are those of the Java client."""

    INITIALIZING = "no position: its committed offset, or its start offset, is looked up"
    FETCHING = "a valid position: the partition is fetched"
    AWAIT_RESET = "ListOffsets looks up the start or the end of the log"
    AWAIT_VALIDATION = "the leader has a newer epoch: OffsetForLeaderEpoch validates the position"


class FetchStateEvent(Enum):
    """An event that may change the fetch state."""

    POSITION_SET = "a committed offset, a start offset or a seek sets the position"
    RESET_REQUESTED = "OFFSET_OUT_OF_RANGE, a start by strategy, or a log without a known end"
    RESET_FINISHED = "ListOffsets has returned the position of the reset strategy"
    LEADER_CHANGED = "metadata has a leader epoch that is newer than that of the position"
    LEADER_UNCHANGED = "metadata has no newer leader epoch, or there is nothing to validate"
    VALIDATED = "the leader has the record before the position"
    TRUNCATED = "the log of the leader ends before the position, which is moved back"
    FETCHED = "a fetch response moves the position"


_I: Final = FetchState.INITIALIZING
_F: Final = FetchState.FETCHING
_R: Final = FetchState.AWAIT_RESET
_V: Final = FetchState.AWAIT_VALIDATION

#: The table of transitions; an event in a state without an entry is a bug of the client.
#:
#: KIP-320: a position is validated when the leader epoch rises (LEADER_CHANGED), either by
#: OffsetForLeaderEpoch (VALIDATED, TRUNCATED) or by the diverging epoch of a fetch response.
#: KIP-392: OFFSET_OUT_OF_RANGE or a diverging epoch from a follower is no event: the leader is
#: asked first. KIP-951: a leader that a response names is no event, either: it only changes the
#: target of the next fetch, and the next plan compares its epoch. A response that was in flight
#: when the state changed may still arrive: AWAIT_RESET and AWAIT_VALIDATION stay.
TRANSITIONS: Final[Mapping[FetchStateEvent, Mapping[FetchState, FetchState]]] = {
    FetchStateEvent.POSITION_SET: {_I: _F, _R: _F},
    FetchStateEvent.RESET_REQUESTED: {_I: _R, _F: _R, _R: _R, _V: _R},
    FetchStateEvent.RESET_FINISHED: {_R: _F},
    FetchStateEvent.LEADER_CHANGED: {_F: _V, _V: _V},
    FetchStateEvent.LEADER_UNCHANGED: {_F: _F, _V: _F},
    FetchStateEvent.VALIDATED: {_F: _F, _R: _R, _V: _F},
    FetchStateEvent.TRUNCATED: {_F: _F, _R: _R, _V: _F},
    FetchStateEvent.FETCHED: {_F: _F, _R: _R, _V: _V},
}


class TopicPartitionState:
    """Tracks one partition from its assignment to its revocation, for plain and group consumers.

    `position` is the next fetch offset, NO_POSITION until it is known; fetching stops at `end`,
    unless `end` is None. `last_epoch` is the leader epoch of the record before the position.
    `leader_epoch` is the epoch of the leader for which the position is valid. Each epoch is -1 if
    unknown. The consumer fetches from `preferred_replica` until `replica_until` (KIP-392). Until
    `leader_until` it fetches from the leader, without its rack in the request. Metadata is used
    only if it is newer than `metadata_since`. These three times are in seconds of the client's
    clock. `was_fetched` is True after the first fetch response without an error, even without
    records. `broken_at` is the position of the last batch that could not be decoded; NO_POSITION if
    there was none.

    `assignment_epoch` numbers the assignment: it changes if the partition is revoked and assigned
    again, and if the topic is deleted and recreated; `seek` does not change it. `topic_id` is the
    id of the assigned topic, zeros until it is known. `has_no_commit` is True while the group is
    known to have no committed offset. `processed_bitmap` has offsets after the first position that
    are processed already, before the assignment or before a `rewind`; the records at these offsets
    are not returned.

    Commits: everything before `user_committed` is processed, because the user committed it.
    Everything before `initial_offset` was processed before the assignment, by any member; a reset
    or a truncation to an earlier offset moves `initial_offset` to that offset. `group_committed` is
    the committed offset at which the partition started; 0 if there was none. While the processed
    offset equals `committed_baseline`, no record was processed since the assignment or an explicit
    commit. The baseline is -1 if every processed offset must be committed, as after a `seek`.
    `is_shared` is True if a group assigned the partition. `is_recreated` is True if its topic was
    recreated while this member read it, or after the group's last commit. With `commits_start` the
    start offset is committed at once, because a later member would otherwise start at another
    offset.
    """

    __slots__ = (
        "_attempts",
        "_epochs",
        "_settings",
        "assignment_epoch",
        "broken_at",
        "changed",
        "commits_start",
        "committed_baseline",
        "end",
        "fetch_state",
        "group_committed",
        "has_no_commit",
        "initial_offset",
        "is_first_position",
        "is_recreated",
        "is_shared",
        "last_epoch",
        "leader_epoch",
        "leader_until",
        "metadata_since",
        "partition",
        "position",
        "preferred_replica",
        "processed_bitmap",
        "replica_until",
        "reset_strategy",
        "topic",
        "topic_id",
        "tp",
        "user_committed",
        "was_fetched",
    )

    def __init__(
        self,
        tp: TopicPartition,
        settings: ClientSettings,
        *,
        position: int = NO_POSITION,
        end: int | None = None,
        assignment_epoch: int = 0,
    ) -> None:
        #: The topic and the number of the partition; all dicts of partitions share this key.
        self.tp = tp
        self.topic, self.partition = tp
        #: The partitions that the next fetch plan looks at; None until the consumer has the state.
        self.changed: dict[TopicPartition, None] | None = None
        self.position = position
        self.end = end
        self.assignment_epoch = assignment_epoch
        self.fetch_state = _I if position == NO_POSITION else _F
        self.reset_strategy: OffsetSpec = "earliest"
        self.has_no_commit = False
        self.commits_start = False
        self._settings = settings
        self._attempts: Attempts | None = None
        self.processed_bitmap: ProcessedBitmap | None = None
        self.metadata_since = _LONG_AGO
        self.was_fetched = False
        self.broken_at = NO_POSITION
        self.last_epoch = UNKNOWN_EPOCH
        self.leader_epoch = UNKNOWN_EPOCH
        self._epochs: EpochHistory | None = None
        self.preferred_replica: int | None = None
        self.replica_until = _LONG_AGO
        self.leader_until = _LONG_AGO
        self.topic_id: Uuid = ZERO_UUID
        self.is_shared = False
        self.is_recreated = False
        self.is_first_position = True
        self.initial_offset = 0
        self.group_committed = 0
        self.user_committed = 0
        self.committed_baseline = NO_POSITION

    @property
    def attempts(self) -> Attempts:
        """The failed attempts since the last success; created at the first access.

        Thousands of partitions may never fail: `failure_count` and `retry_at` do not create it.
        """
        if self._attempts is None:
            self._attempts = Attempts(self._settings)
        return self._attempts

    @property
    def failure_count(self) -> int:
        """The number of failed attempts since the last success."""
        return 0 if self._attempts is None else self._attempts.count

    @property
    def retry_at(self) -> float:
        """The end of the backoff, in seconds of the clock; minus infinity without a failure."""
        return _LONG_AGO if self._attempts is None else self._attempts.not_before

    @property
    def has_position(self) -> bool:
        """True if the position is known."""
        return self.position != NO_POSITION

    @property
    def is_at_end(self) -> bool:
        """True if everything before `end` was fetched."""
        return self.end is not None and self.position >= self.end

    def mark_changed(self) -> None:
        """Makes the next fetch plan look at this partition.

        Call it after each change of the position, the end, an epoch, a backoff or a replica.
        """
        if self.changed is not None:
            self.changed[self.tp] = None

    def transition(self, event: FetchStateEvent) -> None:
        """Changes the fetch state by `TRANSITIONS`, and marks the partition as changed.

        Raises RuntimeError if the current fetch state has no transition for `event`.
        """
        state = TRANSITIONS[event].get(self.fetch_state)
        if state is None:
            raise RuntimeError(
                f"{self.topic}[{self.partition}]: {event.name} is no transition of "
                f"{self.fetch_state.name}"
            )
        self.fetch_state = state
        self.mark_changed()

    # The position

    def set_position(self, offset: int, epoch: int = UNKNOWN_EPOCH) -> None:
        """Sets the position to `offset`.

        `epoch` is the leader epoch of the record before `offset`.
        """
        self.transition(FetchStateEvent.POSITION_SET)
        self.position = offset
        self.processed_bitmap = None
        # A leader of a newer epoch must validate that its log has that record (KIP-320).
        self.last_epoch = self.leader_epoch = epoch
        self._start_epochs(offset, epoch)
        self._on_new_position(offset)

    def await_reset(self, strategy: OffsetSpec) -> None:
        """Requests a reset of the position to the start or the end of the log, or to a time."""
        self.transition(FetchStateEvent.RESET_REQUESTED)
        self.reset_strategy = strategy

    def reset(self, offset: int, *, after_end: OffsetSpec) -> bool:
        """Sets the position to `offset`; returns True if the position is set.

        `offset` is the result of the look-up for `reset_strategy`. After OFFSET_OUT_OF_RANGE the
        first look-up is "earliest": it shows whether the position is before or after the log.

        If the log start offset has overtaken the position, the position becomes the log start
        offset, so no record that exists is skipped. If the position is after the log end, it also
        becomes the log start offset if `after_end` is "earliest"; otherwise the offset of
        `after_end` is looked up next. If no record is at or after the time of `reset_strategy`,
        `offset` is NO_POSITION, and the log end is looked up next. Does nothing if the position was
        set during the look-up.
        """
        if self.fetch_state is not FetchState.AWAIT_RESET:
            return False  # `ensure_positions` has set the position meanwhile
        before = self.position
        self.last_epoch = UNKNOWN_EPOCH
        if self.reset_strategy == "earliest" and after_end != "earliest" and offset <= before:
            self.reset_strategy = after_end
            if offset == before:
                self._on_reset(offset, is_overtaken=False)
            return False
        if offset == NO_POSITION:
            self.reset_strategy = "latest"
            return False
        is_overtaken = self.reset_strategy == "earliest" and before < offset
        self.transition(FetchStateEvent.RESET_FINISHED)
        self.position = offset
        self._on_reset(offset, is_overtaken=is_overtaken)
        return True

    def _on_reset(self, offset: int, *, is_overtaken: bool) -> None:
        if not is_overtaken:  # if only the log start has moved, later offsets stay processed
            self.processed_bitmap = None
        self._start_epochs(offset, UNKNOWN_EPOCH)
        self.user_committed = min(self.user_committed, offset)
        self.initial_offset = min(self.initial_offset, offset)
        self._on_new_position(offset)

    def truncate_to(self, position: int, last_epoch: int, log_end: int) -> None:
        """Moves the position back to `position` after a truncation of the log at `log_end`.

        `last_epoch` is the leader epoch of the record before `position`.
        """
        self.transition(FetchStateEvent.TRUNCATED)
        self.position = position
        self.last_epoch = last_epoch
        if self.end is not None:
            self.end = min(self.end, max(log_end, position))
        self.processed_bitmap = None
        self._start_epochs(position, last_epoch)
        self.user_committed = min(self.user_committed, position)  # other records may be there now
        self.initial_offset = min(self.initial_offset, position)
        self._on_new_position(position)

    def on_fetched(
        self, position: int, last_epoch: int, epochs: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Moves the position to `position`, the offset after the batches of a fetch response.

        `last_epoch` is the leader epoch of the last batch; `epochs` has the offsets at which an
        epoch begins, each with the epoch.
        """
        self.transition(FetchStateEvent.FETCHED)
        self.position = position
        self.last_epoch = last_epoch
        if self._epochs is None:
            self._epochs = EpochHistory(position, UNKNOWN_EPOCH)
        self._epochs.add(epochs)

    def rewind(self, position: int) -> None:
        """Moves the position back to `position`: later batches were dropped and are fetched again.

        Ends a reset in progress, because `position` may be in range.
        """
        if self.fetch_state is FetchState.AWAIT_RESET:
            self.transition(FetchStateEvent.POSITION_SET)
        self.position = position
        self.last_epoch = UNKNOWN_EPOCH if self._epochs is None else self._epochs.rewind(position)
        self.mark_changed()

    def lower_end(self, end: int) -> None:
        """Lowers the end to `end`, but not below the position, because the log ends there now."""
        self.end = max(end, self.position)
        self.mark_changed()

    def lower_last_epoch(self, epoch: int) -> None:
        """Lowers the leader epoch of the record before the position to at most `epoch`."""
        self.last_epoch = min(self.last_epoch, epoch)
        self.mark_changed()

    def _start_epochs(self, offset: int, epoch: int) -> None:
        """Starts the epoch history at `offset`; `epoch` is the epoch of the record before it.

        There is no history until an epoch is known.
        """
        self._epochs = None if epoch == UNKNOWN_EPOCH else EpochHistory(offset, epoch)

    def epoch_before(self, offset: int) -> int:
        """Returns the leader epoch of the record before `offset`; UNKNOWN_EPOCH if unknown."""
        return UNKNOWN_EPOCH if self._epochs is None else self._epochs.epoch_before(offset)

    def _on_new_position(self, offset: int) -> None:
        """Sets the committed baseline after the position was set, reset or truncated.

        The first position becomes the baseline; a later position sets the baseline to -1.
        """
        self.committed_baseline = offset if self.is_first_position else NO_POSITION
        self.is_first_position = False

    # Leaders and replicas

    def may_fetch_from(self, leader_epoch: int) -> bool:
        """Returns False if the leader with this epoch must first validate the position (KIP-320).

        The log of a newer leader may lack records that were fetched from an older leader. If the
        leader epoch of the record before the position is unknown, the position is fetched without
        validation.
        """
        if leader_epoch != self.leader_epoch:
            if self.last_epoch >= 0 and 0 <= self.leader_epoch < leader_epoch:
                self.transition(FetchStateEvent.LEADER_CHANGED)
                return False
            self.leader_epoch = leader_epoch
        if self.fetch_state is not FetchState.FETCHING:
            self.transition(FetchStateEvent.LEADER_UNCHANGED)
        return True

    def skip_validation(self, leader_epoch: int) -> None:
        """Takes the position as valid for `leader_epoch`: the leader cannot validate it."""
        self.leader_epoch = leader_epoch
        self.mark_changed()

    def on_validated(self, leader_epoch: int) -> None:
        """Marks the position as valid for `leader_epoch`, the epoch of the current leader.

        The position is valid because the leader has the record before the position.
        """
        self.leader_epoch = leader_epoch
        self.transition(FetchStateEvent.VALIDATED)

    def prefer_replica(self, replica: int, until: float) -> None:
        """Sets the replica that the leader prefers for fetches until the time `until` (KIP-392)."""
        self.preferred_replica = replica
        self.replica_until = until
        self.mark_changed()

    def prefer_leader(self, until: float) -> None:
        """Fetches from the leader at least until `until`, instead of from the preferred replica.

        Called if the preferred replica has failed or is unknown. `until` is in seconds of the
        clock. Before that time, fetches have no rack: otherwise the leader might name the same
        replica again, instead of sending records.
        """
        self.preferred_replica = None
        self.leader_until = until
        self.mark_changed()

    def select_node(self, leader: int, now: float, brokers: Container[int]) -> int:
        """Returns the node id of the broker to fetch from: the preferred replica or `leader`.

        Returns the leader from `replica_until` on, and if `brokers` lack the replica.
        """
        replica = self.preferred_replica
        if replica is None:
            return leader
        if now >= self.replica_until or replica not in brokers:
            self.preferred_replica = None
            return leader
        return replica

    # Failures

    def on_leader_moved(self, error: KprotoError, now: float) -> None:
        """Retries at once at the new leader, which the response has named (KIP-951)."""
        self._back_off(error, now)
        self.metadata_since = _LONG_AGO
        self.attempts.not_before = now

    def on_failure(self, error: KprotoError, now: float) -> None:
        """Starts a backoff of the partition.

        Raises `error` if no retry helps, or if retries have failed for `api_timeout_ms`. A group's
        partition whose topic was deleted is retried for longer, until it is revoked.
        """
        remedy = fetch_remedy(error)
        if remedy is Remedy.FAIL:
            raise error
        if remedy is Remedy.REFRESH:
            self.metadata_since = now
        self._back_off(error, now)

    def request_offset_reset(self, error: KprotoError, now: float) -> None:
        """Requests a reset, because the position is out of range.

        If this is the first failure since the last success, the reset is due at once. Otherwise it
        is due when a backoff ends.
        """
        self.await_reset("earliest")
        self._back_off(error, now)
        if self.attempts.count == 1:
            self.attempts.not_before = now

    def on_success(self) -> None:
        """Ends the failures of the partition: the next failure counts as the first failure."""
        if self._attempts is not None:
            if self._attempts.count:
                self.mark_changed()
            self._attempts = None

    def on_attempt_started(self, now: float) -> None:
        """Stores that an attempt starts at `now`, maybe before the end of a backoff."""
        if self.failure_count:
            self.attempts.on_attempt_started(now)
            self.mark_changed()

    def attempt_ends_at(self, now: float) -> float:
        """Returns the deadline of an attempt that starts at `now`; infinity if there is none."""
        return _NEVER if self._attempts is None else self._attempts.ends_at(now)

    def make_due(self, now: float) -> None:
        """Makes the fetch due at `now`, because the leader was found."""
        self.attempts.make_due(now)
        self.mark_changed()

    def _back_off(self, error: KprotoError, now: float) -> None:
        self.mark_changed()
        if self.attempts.failed(error, now):
            return
        self.attempts.succeeded()  # the next poll has the whole time for its attempts
        is_deleted = isinstance(error, BrokerResponseError) and error.name in _DELETED
        if not self.is_shared or not is_deleted:
            raise error
        where = f"{self.topic}[{self.partition}]"
        logger.warning("%s does not exist; the group leader will revoke it", where)
        self.attempts.failed(error, now)

    # Commits

    def may_commit(self, offset: int, position: int) -> bool:
        """Returns True if a commit of `offset` concerns the present assignment and topic.

        Returns False if the partition is INITIALIZING, or if `offset` is before the initial offset.
        If the topic was recreated, also returns False if `offset` is after `position`, the offset
        of the next record.
        """
        if self.fetch_state is FetchState.INITIALIZING or offset < self.initial_offset:
            return False
        return not self.is_recreated or offset <= position

    def is_committed_offset(self, offset: int) -> bool:
        """Returns True if `offset` is the committed offset at which the partition started.

        Returns False for offset 0, because `group_committed` is also 0 without a commit.
        """
        return offset == self.group_committed > 0

    def to_commit(self, offset: int, metadata: str = "") -> OffsetAndMetadata:
        """Returns a commit of `offset` with the leader epoch of the record before that offset.

        The leader epoch is -1 if it is unknown.
        """
        epoch = UNKNOWN_EPOCH
        if offset <= self.position:
            epoch = min(self.epoch_before(offset), self.last_epoch)
        return OffsetAndMetadata(offset, epoch, self.topic_id, metadata)
