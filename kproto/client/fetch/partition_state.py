"""One partition that is read: where, how far, and when it may be asked for. Plans fetches.

Decisions on plain data, without a loop. A partition that fails waits by itself: the others of its
topic and its broker go on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, Literal, NamedTuple

from ...wire.errors import KprotoError
from ..commits.incomplete_offsets import IncompleteOffsets
from ..core.retry import Attempts, Remedy
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition
from ..settings import ClientSettings
from .fetch_requests import fetch_remedy
from .filtered_batches import FilteredBatches

__all__ = [
    "NOT_FOUND",
    "NO_REPLICA",
    "FetchPlan",
    "PartitionState",
    "new_partitions",
    "plan_fetches",
]

#: The position of a partition that is new, until it is found.
NOT_FOUND: Final = -1

#: What a response says where the leader itself is to be read from.
NO_REPLICA: Final = -1

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class PartitionState:
    """`position` is the offset to be fetched next, up to `end`.

    `last_epoch` is the leader epoch of the record before it, `leader_epoch` that of the leader in
    whose log it is known to be right; -1 where there is none. `replica` is the broker to read from
    in place of the leader, until `replica_until` (KIP-392), in seconds of the client's clock; until
    `leader_until` the leader is not asked for one, and serves by itself.

    While `lost_to` is set, the log lacks it, and the position is looked for there. Metadata must be
    newer than `suspect_since` to be believed, in seconds of the client's clock. `was_fetched` once
    a fetch of it has been answered without an error, be it with no records. What is `ahead` is done
    already, and handed out to nobody.
    """

    __slots__ = (
        "ahead",
        "attempts",
        "end",
        "last_epoch",
        "leader_epoch",
        "leader_until",
        "lost_to",
        "partition",
        "position",
        "replica",
        "replica_until",
        "suspect_since",
        "topic",
        "was_fetched",
    )

    def __init__(
        self,
        place: TopicPartition,
        position: int | None,
        end: int | None,
        settings: ClientSettings,
    ) -> None:
        self.topic, self.partition = place
        self.position = NOT_FOUND if position is None else position
        self.lost_to: Literal["earliest", "latest"] | None = None
        if position is None:
            self.lost_to = "earliest"
        self.end = end
        self.ahead: IncompleteOffsets | None = None
        self.suspect_since = _LONG_AGO
        self.attempts = Attempts(settings)
        self.was_fetched = False
        self.last_epoch = UNKNOWN_EPOCH
        self.leader_epoch = UNKNOWN_EPOCH
        self.replica: int | None = None
        self.replica_until = _LONG_AGO
        self.leader_until = _LONG_AGO

    @property
    def is_at_end(self) -> bool:
        """True when all that is wanted has been fetched."""
        return self.end is not None and self.position >= self.end

    def is_right_at(self, leader_epoch: int) -> bool:
        """Whether the position may be fetched from a leader of that epoch, or is to be validated.

        A leader that is newer may have a log without what was read (KIP-320). Where nothing was, or
        brokers tell no epochs, there is nothing to validate.
        """
        if leader_epoch != self.leader_epoch:
            if self.last_epoch >= 0 and 0 <= self.leader_epoch < leader_epoch:
                return False
            self.leader_epoch = leader_epoch
        return True

    def set_back(self, position: int, last_epoch: int, log_end: int) -> None:
        """Go back to where the log of a leader still is what was read; it ended at `log_end`."""
        self.position = position
        self.last_epoch = last_epoch
        if self.end is not None:
            self.end = min(self.end, max(log_end, position))

    def took(self, visible: FilteredBatches) -> None:
        """Go on behind what a fetch brought."""
        self.position = visible.position
        self.last_epoch = visible.last_epoch

    def prefer(self, replica: int, until: float) -> None:
        """Read from a replica near by, as the leader says."""
        self.replica = replica
        self.replica_until = until

    def keep_to_leader(self, until: float) -> None:
        """Read from the leader itself, where the replica that it names is of no use now.

        A leader sends no records to whom it names a replica, and may name one that is lost.
        """
        self.replica = None
        self.leader_until = until

    def node(self, leader: int, now: float, brokers: Container[int]) -> int:
        """Whom to fetch from."""
        replica = self.replica
        if replica is None:
            return leader
        if now >= self.replica_until or replica not in brokers:
            self.replica = None
            return leader
        return replica

    def moved(self, error: KprotoError, now: float) -> None:
        """A broker said who leads it now: ask there at once."""
        self._wait(error, now)
        self.suspect_since = _LONG_AGO
        self.attempts.not_before = now

    def failed(self, error: KprotoError, now: float) -> None:
        """Let it wait; raises `error` where nothing mends it, or failures have lasted too long."""
        remedy = fetch_remedy(error)
        if remedy is Remedy.FAIL:
            raise error
        if remedy is Remedy.REFRESH:
            self.suspect_since = now
        self._wait(error, now)

    def lost(self, error: KprotoError, now: float) -> None:
        """Look for the position: at once, and after a wait if that did not help."""
        self.lost_to = "earliest"
        self._wait(error, now)
        if self.attempts.count == 1:
            self.attempts.not_before = now

    def found(self, offset: int, prefers_end: bool) -> int:
        """Take over where the log begins, or ends; returns how many offsets are gone unread.

        A reader that was overtaken, as the log lost its start, goes on at its start: nothing that
        is there is passed over. One that stands behind the end goes where it would have begun.
        """
        position, self.position = self.position, offset
        self.last_epoch = UNKNOWN_EPOCH
        if self.lost_to == "earliest" and prefers_end and offset <= position:
            self.position = position
            self.lost_to = "latest"
            return 0
        self.lost_to = None
        return max(0, offset - position) if position != NOT_FOUND else 0

    def _wait(self, error: KprotoError, now: float) -> None:
        if not self.attempts.failed(error, now):
            self.attempts.succeeded()  # who goes on reading gives it its whole time again
            raise error


class FetchPlan(NamedTuple):
    """Which partitions to ask of which node, for records, for positions, and whether positions are
    right; whose leader to ask for; and when to look again, in seconds of the clock.
    """

    by_node: dict[int, list[PartitionState]]
    lost_by_node: dict[int, list[PartitionState]]
    unsure_by_node: dict[int, list[PartitionState]]
    unled: list[PartitionState]
    next_at: float


def plan_fetches(
    partitions: Iterable[PartitionState],
    now: float,
    led_by: Callable[[str, int, float], int | None],
    epoch_of: Callable[[str, int], int],
    brokers: Container[int],
) -> FetchPlan:
    """What to do at `now` for all partitions, in their order."""
    plan = FetchPlan({}, {}, {}, [], _NEVER)
    next_at = _NEVER
    for state in partitions:
        if state.is_at_end:
            continue
        if state.attempts.not_before > now:
            next_at = min(next_at, state.attempts.not_before)
            continue
        node = led_by(state.topic, state.partition, state.suspect_since)
        if node is None:
            plan.unled.append(state)
        elif state.lost_to is not None:
            plan.lost_by_node.setdefault(node, []).append(state)
        elif not state.is_right_at(epoch_of(state.topic, state.partition)):
            plan.unsure_by_node.setdefault(node, []).append(state)
        else:
            node = state.node(node, now, brokers)
            plan.by_node.setdefault(node, []).append(state)
    return plan._replace(next_at=next_at)


def new_partitions(
    partitions: Iterable[int], topic: str, known: Container[TopicPartition]
) -> list[TopicPartition]:
    """The partitions of a topic that nobody reads yet."""
    return [(topic, partition) for partition in partitions if (topic, partition) not in known]
