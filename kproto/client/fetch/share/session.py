"""`ShareSession`: the share session of this consumer at one broker (KIP-932). Does no I/O.

The epoch of a session rises with each ShareFetch and ShareAcknowledge. The first ShareFetch, with
epoch 0, opens the session and may have no acknowledgements; later ones name only the partitions to
add and to remove. The requests of a session are sent one after the other, because the broker
compares the epoch. The broker closes the session if its connection is lost, and releases the
records that the member has acquired.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple, TypeAlias

from ....wire.uuid import Uuid

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "SessionChange", "ShareSession", "TopicIdPartition"]

#: A partition by the id of its topic: share sessions know no topic names.
TopicIdPartition: TypeAlias = tuple[Uuid, int]

INITIAL_EPOCH: Final = 0

#: The epoch of a request that closes its session; such a request may have acknowledgements.
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 0x7FFF_FFFF


class SessionChange(NamedTuple):
    """The epoch of a ShareFetch, and the partitions to add to the session and to remove from it."""

    epoch: int
    added: list[TopicIdPartition]
    removed: list[TopicIdPartition]


class ShareSession:
    """Tracks the epoch and the partitions of one session.

    `epoch` is the epoch of the next request. After each request call `on_answered` or `reset`.
    """

    __slots__ = ("_next", "epoch", "partitions")

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        #: The partitions that the broker fetches from, in the order of their addition.
        self.partitions: dict[TopicIdPartition, None] = {}
        self._next: dict[TopicIdPartition, None] | None = None

    @property
    def is_open(self) -> bool:
        """True if the broker has answered a ShareFetch of the session."""
        return self.epoch != INITIAL_EPOCH

    def change_to(self, wanted: Collection[TopicIdPartition]) -> SessionChange:
        """Returns the changes that make the session have exactly the partitions `wanted`."""
        before = self.partitions
        added = [each for each in wanted if each not in before]
        removed = []
        if added or len(wanted) != len(before):
            keeps = frozenset(wanted)
            removed = [each for each in before if each not in keeps]
        self._next = dict.fromkeys(wanted) if added or removed else before
        return SessionChange(self.epoch, added, removed)

    def on_answered(self) -> None:
        """Advances the epoch after a response without an error code of the whole request."""
        self.epoch = self.epoch % _LAST_EPOCH + 1
        if self._next is not None:
            self.partitions, self._next = self._next, None

    def reset(self) -> None:
        """Makes the next ShareFetch open a new session.

        The broker closes the present session when it opens the new session.
        """
        self.epoch = INITIAL_EPOCH
        self.partitions = {}
        self._next = None
