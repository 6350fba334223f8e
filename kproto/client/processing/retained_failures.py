"""`RetainedFailures`: the failures of records that are handled again after an aborted transaction.

The abort drops the shards of all partitions, so the number of failures of a record is kept here.
Plain data; a record is named by its topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["RetainedFailures", "TransactionRestartedError"]

_RecordId: TypeAlias = tuple[str, int, int]


class TransactionRestartedError(Exception):
    """Raised in a worker if its record is not in the transaction, and is polled again.

    `too_large` is the error of a broker that has refused the forwarded record, in a retry topic or
    the dead letter topic, because of its size.
    """

    def __init__(self, too_large: BaseException | None = None) -> None:
        self.too_large = too_large
        super().__init__("the transaction of run() is aborted, and the record is polled again")


class RetainedFailures:
    """Retains failures until the offset after their record is committed.

    If a broker has refused records that the handler sent for a record, the handler is not called
    for this record again: the record fails with the error of the broker. A record whose last
    attempt has failed fails again each time it is polled, until its dead letter is committed.
    """

    __slots__ = ("_alone", "_attempts", "_errors", "_final", "_refused_forms")

    def __init__(self) -> None:
        self._attempts: dict[_RecordId, int] = {}
        self._errors: dict[_RecordId, BaseException] = {}  # each is raised once
        self._final: dict[_RecordId, BaseException] = {}
        self._refused_forms: dict[_RecordId, list[BaseException]] = {}
        self._alone: dict[_RecordId, None] = {}

    def count_failure(self, record: Record) -> int:
        """Counts a failure of a record; returns the number of its failures.

        Counts no further failure after `on_last_attempt`.
        """
        its = _id_of(record)
        if its not in self._final:
            self._attempts[its] = self._attempts.get(its, 0) + 1
        return self._attempts[its]

    def retain(self, records: Sequence[Record], error: BaseException) -> None:
        """Retains the error of a broker that has refused a record which the handler has sent.

        If the handler had several `records`, each of them is handled alone next time.
        """
        if len(records) == 1:
            self._errors.setdefault(_id_of(records[0]), error)
        else:
            self._alone.update(dict.fromkeys(map(_id_of, records)))

    def on_last_attempt(self, record: Record, error: BaseException) -> None:
        """Stores that the record has no attempt left: it is forwarded, or ends `run`."""
        self._final[_id_of(record)] = error

    def take(self, record: Record) -> BaseException | None:
        """Returns the error with which a record fails without a call of its handler, or None."""
        if not self._errors and not self._final:
            return None
        its = _id_of(record)
        return self._errors.pop(its, None) or self._final.get(its)

    def batch_size(self, ready: Iterable[Record], most: int) -> int:
        """Returns how many of the `ready` records, at most `most`, the next batch may have."""
        if self._alone:
            for at, record in enumerate(islice(ready, most)):
                if _id_of(record) in self._alone:
                    return max(1, at)
        return most

    def refused_forms_of(self, record: Record) -> list[BaseException]:
        """Returns the errors of the forms in which a broker has refused the forwarded record."""
        return self._refused_forms.get(_id_of(record), [])

    def on_form_refused(self, record: Record, error: BaseException) -> None:
        """Stores that the next form of the forwarded record was also too large."""
        self._refused_forms.setdefault(_id_of(record), []).append(error)

    def forget_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forgets the records before the committed `offsets`."""
        retained: tuple[dict[_RecordId, Any], ...] = (
            self._attempts,
            self._errors,
            self._final,
            self._refused_forms,
            self._alone,
        )
        for found in retained:
            for its in [*found]:
                topic, partition, offset = its
                if offset < offsets.get((topic, partition), -1):
                    del found[its]


def _id_of(record: Record) -> _RecordId:
    return record.topic, record.partition, record.offset
