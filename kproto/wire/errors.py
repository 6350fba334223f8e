"""The error tree of kproto.

Everything that kproto raises on bad input, a bad peer or a bad setting is a `KprotoError`. Each
message says what was wrong, where, and what to do about it. The classes know nothing of sockets or
of any one message; higher layers raise them and may subclass them.
"""

from __future__ import annotations

from typing import Any

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
    "UnsupportedVersionError",
]


class KprotoError(Exception):
    """The base class of every error that kproto raises."""


class DecodeError(KprotoError):
    """The bytes are not a valid message.

    `message`, `version`, `field` (a path such as `topics[3].partitions[0].records`) and `offset`
    (bytes from the start of the message) tell where, as far as known.
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
        """Returns the same error with `size` added to its offset."""
        return DecodeError(
            self.reason,
            message=self.message,
            version=self.version,
            field=self.field,
            offset=None if self.offset is None else self.offset + size,
        )


class EncodeError(KprotoError):
    """The value cannot be written at the requested version.

    `message`, `version` and `field` tell where, as far as known.
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
        super().__init__(_describe(reason, message, version, field, None))


class CorruptBatchError(DecodeError):
    """A record batch or message set is corrupt.

    `offset` is the byte offset in the buffer, `base_offset` the base offset of the batch if it
    could be read.
    """

    def __init__(
        self, reason: str, *, offset: int | None = None, base_offset: int | None = None
    ) -> None:
        self.base_offset = base_offset
        text = reason if base_offset is None else f"{reason} (batch base offset {base_offset})"
        super().__init__(text, offset=offset)
        self.reason = reason


class ConfigurationError(KprotoError, ValueError):
    """A setting cannot work; the message names the setting and the values that would work."""


class MissingCodecError(ConfigurationError):
    """A compression codec needs a package that is not installed; the message names the extra."""


class ProtocolError(KprotoError):
    """The peer broke the protocol: wrong correlation id, oversized frame, unasked response."""


class UnsupportedVersionError(ProtocolError):
    """Both sides share no version of an API that can express the request."""


class AuthenticationError(KprotoError):
    """Authentication failed: refused credentials, an unproven peer, a malformed token.

    The text never contains a password, a key or a proof.
    """


class BrokerConnectionError(KprotoError, ConnectionError):
    """A connection could not be opened, or was lost. `address` is `host:port`.

    `never_written` is True if no byte of the request was sent, so that the broker cannot have acted
    on it.
    """

    def __init__(
        self, reason: str, *, address: str | None = None, never_written: bool = False
    ) -> None:
        self.reason = reason
        self.address = address
        self.never_written = never_written
        self.was_idle = (
            False  # the request ended a silence in which the broker may have been closing
        )
        super().__init__(reason if address is None else f"{address}: {reason}")


class RequestTimeoutError(KprotoError, TimeoutError):
    """A request, or an operation of several requests, did not finish within its timeout."""


class BrokerResponseError(KprotoError):
    """A broker returned an error code. `code` and `name` are Kafka's, and so is `retriable`."""

    def __init__(self, code: int, name: str, detail: str, *, retriable: bool = False) -> None:
        self.code = code
        self.name = name
        self.detail = detail
        self.retriable = retriable
        super().__init__(f"{name} ({code}): {detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Passes all arguments, because pickle would otherwise pass the text only."""
        return type(self), (self.code, self.name, self.detail), vars(self)


def _describe(
    reason: str,
    message: str | None,
    version: int | None,
    field: str | None,
    offset: int | None,
) -> str:
    """Puts the place in front of the reason: `Name v3, field, at byte 7: …`."""
    parts = []
    if message is not None:
        parts.append(message if version is None else f"{message} v{version}")
    if field:
        parts.append(f"field {field}")
    if offset is not None:
        parts.append(f"at byte {offset}")
    return f"{', '.join(parts)}: {reason}" if parts else reason
