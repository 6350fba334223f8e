"""The exception classes of kproto.

kproto's API raises a `KprotoError` for wrong input, for a wrong setting, and if the other side of a
connection breaks the protocol. Other packages of kproto raise these classes and subclass them. The
text of an error names the fault, and where possible the position of the fault and what the user can
do.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

__all__ = [
    "AuthenticationError",
    "BrokerConnectionError",
    "BrokerResponseError",
    "ConfigurationError",
    "CorruptBatchError",
    "DecodeError",
    "EncodeError",
    "KprotoError",
    "MissingCodecError",
    "ProtocolError",
    "RequestTimeoutError",
    "UndecodableRecordError",
    "UnreadableRecordError",
    "UnsupportedVersionError",
]


class KprotoError(Exception):
    """The base class of kproto's exceptions. All of them can be pickled and copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes pickle and copy restore text and fields, without a call of the constructor."""
        return _rebuild_error, (type(self), self.args), vars(self)


class DecodeError(KprotoError):
    """The bytes or the JSON data are not a valid message.

    `message`, `version`, `field` (a path such as `topics[3].partitions[0].records`) and `offset`
    (bytes from the start of the message) locate the fault. Each is None if unknown.
    """

    def __init__(
        self,
        reason: str,
        *,
        message: str | None = None,
        version: int | None = None,
        field: str | None = None,
        offset: int | None = None,
    ) -> None:
        self.reason = reason
        self.message = message
        self.version = version
        self.field = field
        self.offset = offset
        super().__init__(_describe(reason, message, version, field, offset))

    def shifted(self, size: int) -> DecodeError:
        """Returns a copy of this error with `size` bytes added to its offset; None stays None."""
        return DecodeError(
            self.reason,
            message=self.message,
            version=self.version,
            field=self.field,
            offset=None if self.offset is None else self.offset + size,
        )


class EncodeError(KprotoError):
    """A message or record cannot be encoded at the requested version.

    `message`, `version` and `field` (a path) locate the fault. Each is None if unknown. If
    `send_many` of a producer raises the error, `unsent` has the elements that the call has read and
    not sent, in their order; otherwise it is empty.
    """

    def __init__(
        self,
        reason: str,
        *,
        message: str | None = None,
        version: int | None = None,
        field: str | None = None,
    ) -> None:
        self.reason = reason
        self.message = message
        self.version = version
        self.field = field
        self.unsent: list[Any] = []
        super().__init__(_describe(reason, message, version, field, None))


class CorruptBatchError(DecodeError):
    """A record batch or message set is corrupt.

    `offset` is the position of the batch in the buffer, in bytes. `base_offset` is the base offset
    of the batch, None if it could not be read. `topic` and `partition` name the partition if a
    consumer has read the batch; otherwise they are None.
    """

    topic: str | None = None
    partition: int | None = None

    def __init__(
        self, reason: str, *, offset: int | None = None, base_offset: int | None = None
    ) -> None:
        self.base_offset = base_offset
        text = reason if base_offset is None else f"{reason} (batch base offset {base_offset})"
        super().__init__(text, offset=offset)
        self.reason = reason


#: The bytes of an UnreadableRecordError: a record of magic 2 with the length before it; all records
#: of a decompressed batch from the unreadable one on; or a batch as the broker stores it.
UnreadableContent: TypeAlias = Literal["record", "records", "batch"]


class UnreadableRecordError(CorruptBatchError):
    """A record that a broker has stored cannot be decoded; Java: RecordDeserializationException.

    `topic`, `partition` and `record_offset` name the record. A consumer raises the error once, and
    continues at `next_offset`; both are offsets in the log. `raw` has the stored bytes, and
    `content` says what the bytes are: "record", the encoded record; "records", all records of the
    decompressed batch from this record on, because the bounds of the records are unknown; or
    "batch", the whole batch, because it cannot be decompressed.
    """

    def __init__(
        self,
        reason: str,
        *,
        topic: str,
        partition: int,
        record_offset: int,
        next_offset: int,
        raw: bytes,
        content: UnreadableContent,
        offset: int | None = None,
        base_offset: int | None = None,
    ) -> None:
        self.record_offset = record_offset
        self.next_offset = next_offset
        self.raw = raw
        self.content = content
        super().__init__(reason, offset=offset, base_offset=base_offset)
        self.topic, self.partition = topic, partition
        self.args = (f"{topic}[{partition}] at offset {record_offset}: {self}",)


class UndecodableRecordError(KprotoError):
    """A codec of the consumer cannot decode the key or the value of a record.

    `topic`, `partition` and `record_offset` name the record; `field` is "key" or "value", and
    `raw` has the bytes of this field. The cause is the exception of the codec. A consumer raises
    the error once, and continues with the record after it. Java: RecordDeserializationException.
    """

    def __init__(
        self,
        reason: str,
        *,
        topic: str,
        partition: int,
        record_offset: int,
        field: Literal["key", "value"],
        raw: bytes | None,
    ) -> None:
        self.reason = reason
        self.topic, self.partition = topic, partition
        self.record_offset = record_offset
        self.field: Literal["key", "value"] = field
        self.raw = raw
        super().__init__(
            f"{topic}[{partition}] at offset {record_offset}: the {field} cannot be decoded: "
            f"{reason}"
        )


class ConfigurationError(KprotoError, ValueError):
    """A setting or an argument is invalid, or the object cannot be called in its present state.

    The message names the fault and, for a setting, the valid values. For example, a closed producer
    raises this error.
    """


class MissingCodecError(ConfigurationError):
    """A compression codec needs a package that is not installed; the error names the extra."""


class ProtocolError(KprotoError):
    """The other side of a connection broke the protocol.

    For example, it sent a wrong correlation id, a frame that is too large, or a response without a
    request.
    """


class UnsupportedVersionError(ProtocolError):
    """Client and broker share no version of an API that can carry the request."""


class AuthenticationError(KprotoError):
    """Authentication failed.

    For example, the broker refused the credentials, the broker did not prove its identity, or a
    token is malformed.

    kproto writes no password, key or SCRAM proof into the text. The text may quote the server's
    message. If the server is a broker, user names and secrets of at least 4 characters are replaced
    in this message.
    """


class BrokerConnectionError(KprotoError, ConnectionError):
    """A connection could not be opened, or was lost. `address` is `host:port`, None if unknown.

    `never_written` is True if no byte of the request was sent, so that the broker cannot have
    processed it. `was_idle` is True if the connection was idle before the request and the broker
    closed the connection, probably because it was idle (connections.max.idle.ms).
    """

    def __init__(
        self, reason: str, *, address: str | None = None, never_written: bool = False
    ) -> None:
        self.reason = reason
        self.address = address
        self.never_written = never_written
        self.was_idle = False
        super().__init__(reason if address is None else f"{address}: {reason}")


class RequestTimeoutError(KprotoError, TimeoutError):
    """A request, or an operation that sends several requests, exceeded its timeout."""


class BrokerResponseError(KprotoError):
    """A broker returned an error code. `code`, `name` and `retriable` are as in Kafka.

    `detail` describes the failed request.
    """

    def __init__(self, code: int, name: str, detail: str, *, retriable: bool = False) -> None:
        self.code = code
        self.name = name
        self.detail = detail
        self.retriable = retriable
        super().__init__(f"{name} ({code}): {detail}")


def _rebuild_error(kind: type[KprotoError], arguments: tuple[Any, ...]) -> KprotoError:
    """Returns an error of the class `kind` that has only its `args`.

    `KprotoError.__reduce__` returns the error's fields as state; pickle and copy set them later.
    """
    error = kind.__new__(kind)
    error.args = arguments
    return error


def _describe(
    reason: str,
    message: str | None,
    version: int | None,
    field: str | None,
    offset: int | None,
) -> str:
    """Returns the error text: `Name v3, field topics[0], at byte 7: reason`."""
    parts = []
    if message is not None:
        parts.append(message if version is None else f"{message} v{version}")
    if field:
        parts.append(f"field {field}")
    if offset is not None:
        parts.append(f"at byte {offset}")
    return f"{', '.join(parts)}: {reason}" if parts else reason
