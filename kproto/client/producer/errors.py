"""`DeliveryError`: records that were not acked, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ...wire.errors import AuthenticationError, KprotoError
from .record_validation import ProducerRecord

__all__ = ["DeliveryError"]


class DeliveryError(KprotoError):
    """Records of a call that were not acked; `records` has all of them, so that none is lost.

    Each record has its partition and its timestamp, so that it can be sent again as it is. `topic`,
    `partition` (-1 if none was chosen) and `cause` are those of the first record. After a timeout
    or a lost connection it is unknown whether the broker has stored the records. An error whose
    `cause` is an AuthenticationError is an AuthenticationError too.
    """

    def __new__(
        cls, topic: str, partition: int, records: Sequence[ProducerRecord], cause: KprotoError
    ) -> Self:
        """Returns an error that is an AuthenticationError too, if the cause is."""
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
        target = topic if partition < 0 else f"{topic}[{partition}]"
        what = f"{len(self.records)} records for {target} were not acknowledged"
        super().__init__(f"{what if self.records else target}: {cause}")


class UnauthenticatedDeliveryError(DeliveryError, AuthenticationError):
    """Records that were not acked, because authentication between client and broker failed."""
