"""One partition that a group has given to this member: where it begins, and what is done of it.

Plain data. Where it begins is looked for by `assigned`; how it is fetched is `partition`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from ...wire.errors import BrokerResponseError, KprotoError
from ...wire.uuid import ZERO_UUID, Uuid
from ..commits.requests import ToCommit
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition
from ..settings import ClientSettings
from .filtered_batches import FilteredBatches
from .leader_epochs import EpochHistory
from .partition_state import NOT_FOUND, PartitionState

__all__ = ["AssignedPartition", "FetchState"]

logger = logging.getLogger("kproto.client")

#: Errors of a partition that is no more, which its group takes away when its leader notices.
_GONE: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")

#: Where a partition is begun with: by its commit, or as one that has none.
FetchState: TypeAlias = Literal["commit", "start"]


def _nobody() -> None:
    """Nobody wants to know."""


class AssignedPartition(PartitionState):
    """A partition of a group. While it `awaits` something its position is not known.

    `topic_id` is the topic that was assigned, all zeros until it is known: one of the same name
    that is made later is another. What lies before `said` is done, as the user has said. Whoever
    is to commit has the `claim` under which the partition was assigned: `seek` leaves that alone.
    One that `is_shared` is the group's to take away when its topic is gone. What lies before
    `since` was done, by whoever, when this member got it; one that `is_anew` is of a topic that was
    made anew while this member read the one before.

    Where `settled` is what is done, nothing more has been since it `begins`, or since the user has
    committed something else; -1 where what is done counts, as after a `seek`. `on_begun` is called
    once when it has found where it begins.
    """

    __slots__ = (
        "awaits",
        "begins",
        "claim",
        "epochs",
        "is_anew",
        "is_shared",
        "on_begun",
        "said",
        "settled",
        "since",
        "topic_id",
    )

    def __init__(self, place: TopicPartition, settings: ClientSettings, claim: object) -> None:
        super().__init__(place, None, None, settings)
        self.claim = claim
        self.is_anew = False
        self.is_shared = False
        self.lost_to = None
        self.awaits: FetchState | None = "commit"
        self.topic_id: Uuid = ZERO_UUID
        self.epochs = EpochHistory(0, UNKNOWN_EPOCH)
        self.said = 0
        self.since = 0
        self.begins = True
        self.settled = NOT_FOUND
        self.on_begun: Callable[[], None] = _nobody

    def gave(self, offset: int, handed_out: int) -> bool:
        """Whether what lies before `offset` can have been handed out since it was assigned.

        All before `handed_out` was, unless somebody has moved it.
        """
        if self.awaits is not None or offset < self.since:
            return False
        return not self.is_anew or offset <= handed_out

    @property
    def is_placed(self) -> bool:
        """Whether it has a position."""
        return self.position != NOT_FOUND

    def begin_at(self, offset: int, epoch: int = UNKNOWN_EPOCH) -> None:
        """Read from `offset` on; `epoch` is the leader epoch of the record before it."""
        self.awaits = None
        self.lost_to = None
        self.position = offset
        self.ahead = None
        # A leader of a newer epoch is asked whether its log has that record (KIP-320).
        self.last_epoch = self.leader_epoch = epoch
        self.epochs = EpochHistory(offset, epoch)
        self._placed(offset)

    def _placed(self, offset: int) -> None:
        """It goes on at `offset`: as it begins, or as the log no longer has what it read."""
        self.settled = offset if self.begins else NOT_FOUND
        self.begins = False
        on_begun, self.on_begun = self.on_begun, _nobody
        on_begun()

    def begin_by(self, where: Literal["earliest", "latest"]) -> None:
        """Look for the start of the log, or for its end."""
        self.awaits = None
        self.lost_to = where

    def took(self, visible: FilteredBatches) -> None:
        super().took(visible)
        self.epochs.add(visible.epochs)

    def set_back(self, position: int, last_epoch: int, log_end: int) -> None:
        super().set_back(position, last_epoch, log_end)
        self.ahead = None
        self.epochs = EpochHistory(position, last_epoch)
        self.said = min(self.said, position)  # others may stand there
        self._placed(position)

    def found(self, offset: int, prefers_end: bool) -> int:
        if self.lost_to is None:
            return 0  # who asked for the position has found it meanwhile
        is_overtaken = self.lost_to == "earliest" and self.position < offset
        gone = super().found(offset, prefers_end)
        if self.position == offset:
            if not is_overtaken:  # what is done behind the start that the log has now stays done
                self.ahead = None
            self.epochs = EpochHistory(offset, UNKNOWN_EPOCH)
            self.said = min(self.said, offset)
            self._placed(offset)
        return gone

    def _wait(self, error: KprotoError, now: float) -> None:
        try:
            super()._wait(error, now)
        except BrokerResponseError as gone:
            if not self.is_shared or gone.name not in _GONE:
                raise
            where = f"{self.topic}[{self.partition}]"
            logger.warning("%s is not there: the leader of the group will see to it", where)
            self.attempts.failed(error, now)

    def to_commit(self, offset: int, metadata: str = "") -> ToCommit:
        """A commit of `offset`, with the epoch of the record before it as far as it is known."""
        epoch = UNKNOWN_EPOCH
        if offset <= self.position:
            epoch = min(self.epochs.before(offset), self.last_epoch)
        return ToCommit(offset, epoch, self.topic_id, metadata)
