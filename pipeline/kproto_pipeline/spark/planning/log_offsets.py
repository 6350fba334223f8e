"""What the brokers have, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.client import TopicPartition
    from kproto.wire.uuid import Uuid

__all__ = ["LogOffsets"]


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """What the brokers have now: the id of each partition's topic, its first and its next offset.

    An id is all zeros where the brokers are too old to tell it.
    """

    topic_ids: Mapping[TopicPartition, Uuid]
    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]
