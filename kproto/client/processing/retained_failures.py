"""`RetainedFailures`: the failures of records that are handled again after an aborted transaction.

The abort drops the shards of all partitions, so the number of failures of a record is kept here.
Plain data; a record is named by its topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["RetainedFailures", "TransactionRestartedError"]

_RecordId: TypeAlias = tuple[str, int, int]


class TransactionRestartedError(Exception):
    """Raised in a worker if its record is not in the transaction, and is polled again.

    If `is_too_large`, a broker has refused the dead letter of the record, or its record in a retry
    topic, because of its size.
    """

    def __init__(self, *, is_too_large: bool = False) -> None:
        self.is_too_large = is_too_large
        super().__init__("the transaction of run() is aborted, and the record is polled again")


class RetainedFailures:
    """Retains failures until the offset after their record is committed.

    `attempts` is the number of failures of a record. `errors` has the error of a record whose sent
    records a broker has refused; it is raised instead of the next call of the handler.
    `refused_forms` is the number of forms in which a forwarded record was too large.
    """

    __slots__ = ("attempts", "errors", "refused_forms")

    def __init__(self) -> None:
        self.attempts: dict[_RecordId, int] = {}
        self.errors: dict[_RecordId, BaseException] = {}
        self.refused_forms: dict[_RecordId, int] = {}

    def count_failure(self, record: Record) -> int:
        """Counts a failure of a record; returns the number of its failures."""
        its = _id_of(record)
        self.attempts[its] = self.attempts.get(its, 0) + 1
        return self.attempts[its]

    def retain(self, record: Record, error: BaseException) -> None:
        """Retains the error of a record until `take` is called with the record."""
        self.errors.setdefault(_id_of(record), error)

    def take(self, record: Record) -> BaseException | None:
        """Returns the retained error of a record, and forgets it; None if there is none."""
        return self.errors.pop(_id_of(record), None) if self.errors else None

    def refused_forms_of(self, record: Record) -> int:
        """Returns the number of forms in which a broker has refused the forwarded record."""
        return self.refused_forms.get(_id_of(record), 0)

    def on_form_refused(self, record: Record) -> None:
        """Records that the next form of the forwarded record was too large, too."""
        self.refused_forms[_id_of(record)] = self.refused_forms_of(record) + 1

    def forget_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forgets the records before the committed `offsets`."""
        for retained in (self.attempts, self.errors, self.refused_forms):
            for its in [*retained]:
                topic, partition, offset = its
                if offset < offsets.get((topic, partition), -1):
                    del retained[its]


def _id_of(record: Record) -> _RecordId:
    return record.topic, record.partition, record.offset
