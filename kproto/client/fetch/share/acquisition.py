"""Tracks the acknowledgements of acquired records, offset by offset. Does no I/O (KIP-932).

A broker acquires ranges of offsets for a member, and locks them for a time. An `Acquisition` is one
such range; each of its offsets has a state, which is a byte. Tables of bytes have the next state of
each state: after a request was sent, after a renewal and after the loss of a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from ....records import Record
from ....records.record import BatchOrigin
from ....records.type_variables import K, V
from ....wire.errors import ConfigurationError, KprotoError
from ....wire.uuid import Uuid
from ...metadata.cluster import TopicPartition

__all__ = [
    "ACKNOWLEDGEMENTS",
    "AckRun",
    "AcknowledgeType",
    "Acquisition",
    "LockLostError",
    "OffsetState",
    "ShareOrigin",
    "ShareRecord",
    "ack_runs",
    "acknowledged_ranges",
    "acquisition_of",
]

NewK = TypeVar("NewK")
NewV = TypeVar("NewV")


class AcknowledgeType(IntEnum):
    """The acknowledgement of a record, with its number in ShareFetch and ShareAcknowledge."""

    #: The offset has no record: the log was compacted, or the offset has a control record.
    GAP = 0
    #: The record is processed, and is never delivered again.
    ACCEPT = 1
    #: The record may be delivered again, to any member.
    RELEASE = 2
    #: The record cannot be processed, and is never delivered again.
    REJECT = 3
    #: The lock of the record starts again; another acknowledgement must follow (KIP-1222).
    RENEW = 4


class OffsetState(IntEnum):
    """The states of an offset besides an acknowledgement that waits to be sent (0 to 4)."""

    RENEWING = 252  # a renewal was sent, and is not answered
    LOST = 253  # the broker has refused a renewal, or has acquired the offset again
    ACKNOWLEDGED = 254  # an acknowledgement was sent
    UNACKNOWLEDGED = 255


class LockLostError(KprotoError):
    """Raised if a record is acknowledged after its acquisition lock has ended.

    The broker delivers the record again, to any member.
    """


#: All acknowledgements of records.
ACKNOWLEDGEMENTS: Final = frozenset(AcknowledgeType) - {AcknowledgeType.GAP}

#: Neighbouring states that are acknowledgements.
_ACKS: Final = re.compile(rb"[\x00-\x04]+")

_GAP: Final = bytes([AcknowledgeType.GAP])
_ACCEPT: Final = bytes([AcknowledgeType.ACCEPT])
_RENEW: Final = int(AcknowledgeType.RENEW)
_OPEN: Final = int(OffsetState.UNACKNOWLEDGED)
_OPEN_BYTE: Final = bytes([_OPEN])
_RENEWING: Final = int(OffsetState.RENEWING)
_SENT: Final = int(OffsetState.ACKNOWLEDGED)
_LOST: Final = int(OffsetState.LOST)

#: The states in which an offset accepts an acknowledgement. The renewal of a record may wait to be
#: sent or answered while its handler ends.
_ACKNOWLEDGEABLE: Final = frozenset((_OPEN, _RENEW, _RENEWING))

#: State -> the state after a request with the acknowledgements of an acquisition was sent.
_AFTER_SENDING: Final = bytes(
    _RENEWING if state == _RENEW else _SENT if state < _RENEW else state for state in range(256)
)

#: State -> the state after the broker has renewed the locks, or has refused to renew them.
_AFTER_RENEWAL: Final = bytes(_OPEN if state == _RENEWING else state for state in range(256))
_AFTER_REFUSAL: Final = bytes(_LOST if state == _RENEWING else state for state in range(256))

#: State -> the state after the broker has acquired the offset again.
_AFTER_LOSS: Final = bytes(_SENT if state == _SENT else _LOST for state in range(256))
_LOST_BYTE: Final = bytes([_LOST])
_FINAL: Final = bytes([_LOST, _SENT])

#: At least this many neighbouring offsets with the same acknowledgement have a batch of their own
#: in a request; fewer offsets are listed one by one, in a batch with their neighbours.
_LEAST_RUN: Final = 10


class AckRun(NamedTuple):
    """Acknowledgements of neighbouring offsets; one type stands for all offsets."""

    first: int
    last: int
    types: bytes


class Acquisition:
    """The offsets from `first` on that the broker `node` has acquired for this member.

    `states` has one byte for each offset. The locks certainly last until `locked_until`, in seconds
    of the clock: their duration counts from the time at which the request was sent, so a member
    that was suspended meanwhile knows that they may be gone. If only some offsets were renewed,
    these have later ends; see `locked_until_of`. `owner` is that of the exchange which sent the
    request. `is_pending` is True while the acquisition is in the list of acquisitions with
    acknowledgements to send.
    """

    __slots__ = (
        "_renewed",
        "delivery_count",
        "first",
        "is_pending",
        "locked_until",
        "node",
        "owner",
        "partition",
        "states",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        owner: object,
        node: int,
        tp: TopicPartition,
        topic_id: Uuid,
        first: int,
        last: int,
        delivery_count: int,
        locked_until: float,
    ) -> None:
        self.owner = owner
        self.node = node
        self.topic, self.partition = tp
        self.topic_id = topic_id
        self.first = first
        self.delivery_count = delivery_count
        self.locked_until = locked_until
        self._renewed: dict[int, float] | None = None  # by offset: the end of a renewed lock
        self.states = bytearray(_OPEN_BYTE * (last - first + 1))
        self.is_pending = False

    @property
    def last(self) -> int:
        """The last offset."""
        return self.first + len(self.states) - 1

    def locked_until_of(self, offset: int) -> float:
        """Returns the time until which the lock of one offset certainly lasts."""
        renewed = self._renewed
        return self.locked_until if renewed is None else renewed.get(offset, self.locked_until)

    @property
    def last_locked_until(self) -> float:
        """The time until which the last of the locks certainly lasts."""
        renewed = self._renewed
        return self.locked_until if renewed is None else max(renewed.values())

    def acknowledge(self, offset: int, kind: int, now: float) -> None:
        """Stores the acknowledgement of one offset, to be sent.

        Raises LockLostError if the lock has ended, and ConfigurationError if the record is
        acknowledged already.
        """
        at = offset - self.first
        state = self.states[at]
        if state == _OPEN and now < self.locked_until:  # that of almost all records
            self.states[at] = kind
            return
        if now >= self.locked_until_of(offset) or state == _LOST:
            raise LockLostError(
                f"{self._name(offset)} is not locked any more: its acknowledgement came after the "
                "acquisition lock had ended (group.share.record.lock.duration.ms), and the broker "
                "delivers the record again; renew the record while it is processed"
            )
        if state not in _ACKNOWLEDGEABLE:
            raise ConfigurationError(f"{self._name(offset)} is acknowledged already")
        if kind != _RENEW:  # a renewal waits already
            self.states[at] = kind

    def _name(self, offset: int) -> str:
        return f"the record {self.topic}[{self.partition}] at offset {offset}"

    def is_acknowledged(self, offset: int) -> bool:
        """Returns True if the offset accepts no acknowledgement any more."""
        return self.states[offset - self.first] not in _ACKNOWLEDGEABLE

    def acknowledge_open(self, kind: int, first: int, last: int | None = None) -> bool:
        """Stores `kind` for the offsets from `first` to `last` that are not acknowledged.

        Without `last`, goes to the end. Returns True if there are any. Raises no error if the lock
        has ended: the broker then refuses the acknowledgement.
        """
        begin = first - self.first
        end = len(self.states) if last is None else last - self.first + 1
        states = self.states[begin:end]
        if _OPEN_BYTE not in states:
            return False
        self.states[begin:end] = states.replace(_OPEN_BYTE, bytes([kind]))
        return True

    def acknowledge_gaps(self, first: int, offsets: Sequence[int], kind: int) -> bool:
        """Acknowledges with `kind` the offsets from `first` on that are not in `offsets`.

        `offsets` are the next offsets with records, ascending. Goes to the last of them. Offsets
        that are acknowledged or lost already stay so. Returns True if offsets are missing.
        """
        last = offsets[-1]
        if last - first + 1 == len(offsets):
            return False
        states = bytearray(bytes([kind]) * (last - first + 1))
        for offset in offsets:
            states[offset - first] = _OPEN
        begin, end = first - self.first, last - self.first + 1
        before = self.states[begin:end]
        if before.strip(_OPEN_BYTE):
            for at, state in enumerate(before):
                if state != _OPEN:
                    states[at] = state
        self.states[begin:end] = states
        return True

    @property
    def has_unsent(self) -> bool:
        """True if an acknowledgement waits to be sent."""
        return min(self.states) <= _RENEW

    @property
    def has_renewals(self) -> bool:
        """True if a renewal waits to be sent."""
        return _RENEW in self.states

    @property
    def has_renewing(self) -> bool:
        """True if a renewal was sent, and is not answered."""
        return _RENEWING in self.states

    @property
    def is_finished(self) -> bool:
        """True if no offset can be acknowledged any more, and no acknowledgement is unsent."""
        return not self.states.strip(_FINAL)

    def lose(self, first: int, last: int) -> bytes | None:
        """Ends the locks of the offsets from `first` to `last`, as far as they are of this range.

        Returns states with the acknowledgements that were not sent; None if there are none.
        """
        begin, end = max(first - self.first, 0), min(last - self.first + 1, len(self.states))
        if begin >= end:
            return None
        its = self.states[begin:end]
        self.states[begin:end] = its.translate(_AFTER_LOSS)
        if min(its) > _RENEW:
            return None
        return _LOST_BYTE * begin + bytes(its) + _LOST_BYTE * (len(self.states) - end)

    def lose_all(self) -> None:
        """Ends the locks of all offsets: an implicit acceptance is not sent any more."""
        self.states = self.states.translate(_AFTER_LOSS)

    def take(self) -> bytes:
        """Returns the states, and marks the acknowledgements as sent."""
        sent = bytes(self.states)
        self.states = self.states.translate(_AFTER_SENDING)
        return sent

    def on_answered(self, sent: bytes, locked_until: float) -> None:
        """Processes the success of a request with the states `sent`.

        Renewed locks last until `locked_until`.
        """
        if _RENEW not in sent:
            return
        self.states = self.states.translate(_AFTER_RENEWAL)
        pairs = zip(self.states, sent, strict=True)
        if all(kind == _RENEW or state in _FINAL for state, kind in pairs):
            self.locked_until, self._renewed = locked_until, None
            return
        offsets = [at for at, kind in enumerate(sent, self.first) if kind == _RENEW]
        self._renewed = (self._renewed or {}) | dict.fromkeys(offsets, locked_until)

    def split_by_lock(self, sent: bytes, now: float) -> tuple[bytes | None, bytes | None]:
        """Returns `sent` with the acknowledgements of locked offsets, and with the other ones.

        Either is None if it has no acknowledgement.
        """
        if now < self.locked_until:
            return sent, None
        if now >= self.last_locked_until:
            return None, sent
        kept, lost = bytearray(sent), bytearray(sent)
        for at, offset in enumerate(range(self.first, self.last + 1)):
            unlocked = now >= self.locked_until_of(offset)
            (kept if unlocked else lost)[at] = _LOST
        return _with_acks(kept), _with_acks(lost)

    def on_refused(self, sent: bytes) -> None:
        """Processes the failure of a request with the states `sent`; nothing is sent again."""
        if _RENEW in sent:
            self.states = self.states.translate(_AFTER_REFUSAL)

    def restore(self, sent: bytes) -> None:
        """Makes the acknowledgements in the states `sent` wait to be sent again."""
        states = self.states
        for at, kind in enumerate(sent):
            if kind <= _RENEW and states[at] in (_SENT, _RENEWING):
                states[at] = kind


def _with_acks(states: bytearray) -> bytes | None:
    return bytes(states) if min(states) <= _RENEW else None


def ack_runs(first: int, sent: bytes) -> Iterator[AckRun]:
    """Yields the acknowledgements in the states `sent` of an acquisition that begins at `first`."""
    if sent[0] <= _RENEW and sent.count(sent[0]) == len(sent):
        yield AckRun(first, first + len(sent) - 1, sent[:1])
        return
    for run in _ACKS.finditer(sent):
        yield from _split(first + run.start(), run.group())


def _split(first: int, types: bytes) -> Iterator[AckRun]:
    """Yields the acknowledgements of neighbouring offsets; long runs of a type are one batch."""
    begin = at = 0
    while at < len(types):
        end = at + len(types[at:]) - len(types[at:].lstrip(types[at : at + 1]))
        if end - at >= _LEAST_RUN or (at == begin and end == len(types)):
            if at > begin:
                yield AckRun(first + begin, first + at - 1, types[begin:at])
            yield AckRun(first + at, first + end - 1, types[at : at + 1])
            begin = end
        at = end
    if begin < len(types):
        yield AckRun(first + begin, first + len(types) - 1, types[begin:])


def acknowledged_ranges(
    first: int, sent: bytes, kinds: frozenset[int] = ACKNOWLEDGEMENTS
) -> list[range]:
    """Returns the offsets whose states in `sent` are acknowledgements of `kinds`.

    Without `kinds`, returns all acknowledged offsets, except for gaps.
    """
    found: list[range] = []
    for run in ack_runs(first, sent):
        if len(run.types) == 1:
            if run.types[0] in kinds:
                found.append(range(run.first, run.last + 1))
            continue
        begin = None
        for offset, kind in enumerate(run.types, run.first):
            if kind in kinds and begin is None:
                begin = offset
            elif kind not in kinds and begin is not None:
                found.append(range(begin, offset))
                begin = None
        if begin is not None:
            found.append(range(begin, run.last + 1))
    return found


class ShareOrigin(BatchOrigin):
    """Holds the fields that all records of an acquisition share.

    `acquisition` is None for a copy of a record, which cannot be acknowledged.
    """

    __slots__ = ("acquisition", "delivery_count")

    def __init__(
        self,
        topic: str,
        partition: int,
        timestamp_type: int,
        position: int | None,
        base_offset: int | None,
        delivery_count: int,
        acquisition: Acquisition | None = None,
    ) -> None:
        super().__init__(topic, partition, timestamp_type, position, base_offset)
        self.delivery_count = delivery_count
        self.acquisition = acquisition

    @classmethod
    def of(cls, origin: BatchOrigin, acquisition: Acquisition) -> ShareOrigin:
        """Returns the origin of the records of `acquisition` in the batch of `origin`."""
        return cls(
            acquisition.topic,
            acquisition.partition,
            origin.timestamp_type,
            origin.position,
            origin.base_offset,
            acquisition.delivery_count,
            acquisition,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the fields for pickle and copy, without the acquisition."""
        return ShareOrigin, (
            self.topic,
            self.partition,
            self.timestamp_type,
            self.position,
            self.base_offset,
            self.delivery_count,
        )


def acquisition_of(record: Record[Any, Any]) -> Acquisition | None:
    """Returns the acquisition of a record; None for a copy, and for other consumers' records.

    `record` is a `ShareRecord`, or the `Undecodable` in its place.
    """
    return getattr(record._origin, "acquisition", None)


class ShareRecord(Record[K, V]):
    """A record of a share group: a `Record` with the number of its deliveries.

    In annotations, `ShareRecord` is a record of bytes, and `ShareRecord[str, Order]` a record with
    decoded key and value.
    """

    __slots__ = ()

    @property
    def delivery_count(self) -> int:
        """Returns how often a member has acquired the record, counted from 1.

        The broker archives a record whose deliveries have all failed after the number of
        deliveries that its config `group.share.delivery.count.limit` allows, 5 by default. Returns
        0 for a record that was changed, and therefore cannot be acknowledged.
        """
        return getattr(self._origin, "delivery_count", 0)

    @property
    def acquisition(self) -> Acquisition | None:
        """Returns the acquisition of the record; None for a copy of a record."""
        return acquisition_of(self)

    def converted(self, key: NewK | None, value: NewV | None) -> ShareRecord[NewK, NewV]:
        """Returns a record with another key and value, which can be acknowledged in its place."""
        converted: Any = super().converted(key, value)
        converted.__class__ = ShareRecord
        record: ShareRecord[NewK, NewV] = converted
        return record
