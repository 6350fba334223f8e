"""`DeliveryError`: records that were not acknowledged, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ...wire.errors import AuthenticationError, KprotoError
from .record_validation import ProducerRecord

__all__ = ["DeliveryError"]


class DeliveryError(KprotoError):
    """Records that were not acknowledged. Nothing is lost: those of this call are in `records`.

    Each says its partition and its timestamp, so that it can be sent again as it is. `topic`,
    `partition` (-1 where none was chosen) and `cause` say where the first of them was to go, and
    why it is not there.
    Whether the broker has stored them is unknown after a time-out or a lost connection. One whose
    `cause` is an AuthenticationError is one itself.
    """

    def __new__(
        cls, topic: str, partition: int, records: Sequence[ProducerRecord], cause: KprotoError
    ) -> Self:
        """An AuthenticationError where that is the cause, so that it is caught as one."""
        made: type[DeliveryError] = cls
        if cls is DeliveryError and isinstance(cause, AuthenticationError):
            made = UnauthenticatedDeliveryError
        return super().__new__(made)  # type: ignore[return-value]  # it is a cls

    def __init__(
        self,
        topic: str,
        partition: int,
        records: Sequence[ProducerRecord],
        cause: KprotoError,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.records = list(records)
        self.cause = cause
        place = topic if partition < 0 else f"{topic}[{partition}]"
        what = f"{len(self.records)} records for {place} were not acknowledged"
        super().__init__(f"{what if self.records else place}: {cause}")


class UnauthenticatedDeliveryError(DeliveryError, AuthenticationError):
    """Records that were not acknowledged, as client and broker did not take each other."""
