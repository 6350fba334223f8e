"""A Kafka record as plain data, and what reading one can come to.

Nothing here decides anything: the binding (`kafka`) fills these in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from .errors import CloudEventError
from .event import CloudEvent

__all__ = [
    "DEFAULT",
    "LENIENT",
    "STRICT",
    "Header",
    "InvalidEvent",
    "KafkaRecord",
    "KeyMapper",
    "Mode",
    "NotAnEvent",
    "OpaqueEvent",
    "Profile",
]

Mode = Literal["binary", "structured"]
Header = tuple[str, bytes | None]
#: Gives the key of the record for an event; it cannot change the event, which is immutable.
KeyMapper = Callable[[CloudEvent], bytes | None]


class Profile(NamedTuple):
    """What a reader puts up with beyond the binding, or refuses within it."""

    #: Take `CE_Type` and `Content-Type` for `ce_type` and `content-type`; Kafka's header keys are
    #: case-sensitive, but bridges from HTTP write them so.
    any_case_headers: bool = False
    #: Refuse an unknown specversion and an unknown event format instead of passing them on.
    refuse_unknown: bool = False


DEFAULT: Final = Profile()
STRICT: Final = Profile(refuse_unknown=True)
LENIENT: Final = Profile(any_case_headers=True)


class KafkaRecord(NamedTuple):
    """Key, value and headers of a Kafka record; null is None, and is not the same as empty."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"KafkaRecord(key={_size(self.key)}, value={_size(self.value)}, headers=[{names}])"


class OpaqueEvent(NamedTuple):
    """An event that can be forwarded as it is but not read; `to_kafka` gives its record back."""

    record: KafkaRecord
    #: Why it cannot be read: its event format or its specversion is unknown.
    reason: str

    def to_kafka_record(self, mode: Any = None, **options: Any) -> Any:
        """The record as `to_kafka` gives it; see `CloudEvent.to_kafka_record`."""
        from .kafka import to_kafka  # which stands on this module

        return to_kafka(self, mode, **options)


class NotAnEvent(NamedTuple):
    """A record with nothing of CloudEvents about it."""

    record: KafkaRecord
    reason: str

    @property
    def tombstone(self) -> bool:
        """True when the value is null: in a compacted topic it deletes its key."""
        return self.record.value is None

    def to_kafka_record(self, mode: Any = None, **options: Any) -> Any:
        """The record as `to_kafka` gives it; see `CloudEvent.to_kafka_record`."""
        from .kafka import to_kafka  # which stands on this module

        return to_kafka(self, mode, **options)


class InvalidEvent(NamedTuple):
    """A record that claims to be an event and breaks a rule, as reading many at once gives it."""

    record: KafkaRecord
    error: CloudEventError


def _size(part: bytes | None) -> str:
    return "null" if part is None else f"<{len(part)} bytes>"
