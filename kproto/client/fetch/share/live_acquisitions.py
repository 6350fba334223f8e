"""`LiveAcquisitions`: finds acquisitions whose offsets the broker has acquired again. No I/O.

A member cannot know exactly when a lock ends at the broker. If the broker acquires an offset for
the member again, the earlier lock has ended: an acknowledgement of the earlier record would be
applied to the later delivery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ....messages.share_fetch_response import PartitionData
from ....wire.uuid import Uuid
from ...metadata.cluster import TopicPartition
from .acquisition import Acquisition
from .buffer import acquired_ranges
from .requests import SentAcks

__all__ = ["LiveAcquisitions", "acquisitions_of"]


def acquisitions_of(
    owner: object,
    node: int,
    tp: TopicPartition,
    topic_id: Uuid,
    data: PartitionData,
    locked_until: float,
) -> list[Acquisition]:
    """Returns the acquisitions of a partition in a response, in the order of their offsets.

    Raises ProtocolError for impossible ranges of offsets.
    """
    return [
        Acquisition(
            owner,
            node,
            tp,
            topic_id,
            each.first_offset,
            each.last_offset,
            each.delivery_count,
            locked_until,
        )
        for each in acquired_ranges(data, tp)
    ]


class LiveAcquisitions:
    """The acquisitions of each partition that may still be acknowledged, oldest first."""

    def __init__(self) -> None:
        self._live: dict[TopicPartition, deque[Acquisition]] = {}

    def add(self, acquisitions: Sequence[Acquisition], now: float) -> list[SentAcks]:
        """Adds new acquisitions of one partition; ends earlier locks on the same offsets.

        Returns the acknowledgements of earlier acquisitions that were not sent, and are lost.
        """
        tp = acquisitions[0].topic, acquisitions[0].partition
        live = self._live.setdefault(tp, deque())
        while live and _is_over(live[0], now):
            live.popleft().lose_all()
        lost = []
        first, last = acquisitions[0].first, acquisitions[-1].last
        for earlier in live:
            if earlier.last < first or earlier.first > last:
                continue
            states = [earlier.lose(each.first, each.last) for each in acquisitions]
            lost += [SentAcks(earlier, each) for each in states if each is not None]
        live += acquisitions
        return lost

    def locked(self, now: float) -> list[Acquisition]:
        """Returns the acquisitions with locks that have not ended."""
        return [each for its in self._live.values() for each in its if each.last_locked_until > now]


def _is_over(acquisition: Acquisition, now: float) -> bool:
    """Returns True if the lock has ended, and no acknowledgement is unsent or may renew it."""
    if acquisition.is_finished:
        return True
    is_waiting = acquisition.has_unsent or acquisition.has_renewing
    return acquisition.last_locked_until <= now and not is_waiting
