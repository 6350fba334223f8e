"""Matches responses to requests, and reads them; writes an unchanged message as the received bytes.

The received bytes of a message are stored unchanged. A buffer other than `bytes` is copied, so that
the owner of the buffer can reuse it. `PendingRequests` holds the requests of one connection that
have no response yet.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.base import Message, Response
from ..messages.response_header import ResponseHeader
from ..wire.buffers import BytesLike, octets
from ..wire.errors import DecodeError, ProtocolError
from ..wire.tags import RawTaggedField
from .framing import frame
from .headers import (
    API_VERSIONS,
    response_class,
    response_header,
    response_header_version,
)
from .message_classes import KAFKA_MESSAGES, MessageClasses
from .negotiation import UNSUPPORTED_VERSION

__all__ = [
    "NO_TAGS",
    "PendingRequest",
    "PendingRequests",
    "ReceivedResponse",
    "body_bytes",
    "copy_octets",
    "name_of",
    "original_or_encoded",
    "read_response",
    "read_response_message",
    "read_response_of",
]

#: The correlation id; every response begins with it, in any version of its header.
_CORRELATION_ID: Final = struct.Struct(">i")

#: The tagged fields of a header that has none.
NO_TAGS: Final[tuple[RawTaggedField, ...]] = ()

#: The message of an error response if only the error code can be read.
_REFUSAL: Final = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION)


class ReceivedResponse(NamedTuple):
    """Holds a response; `version` is the version of the received bytes.

    - `message`: None if no definition has the api key and version of the request;
    - `size`: the bytes in the frame, without the four bytes of its size;
    - `trailing`: the bytes after the body;
    - `header_tags`: unknown tagged fields of the header;
    - `body`: the received body, or all bytes after the correlation id if `message` is None;
    - `cls`: the response class of the api key, None if there is none;
    - `head`: the received header; b"" if `message` is None, and possibly for error 35 of
      ApiVersions.
    """

    api_key: int
    version: int
    correlation_id: int
    message: Response | None
    size: int
    trailing: bytes
    header_tags: tuple[RawTaggedField, ...] = NO_TAGS
    body: bytes | memoryview = b""
    cls: type[Response] | None = None
    head: bytes = b""

    @property
    def name(self) -> str:
        """Returns the response's name, or `api key N` if no definition has the api key."""
        return name_of(self.cls or response_class(self.api_key), self.api_key)

    def to_frame(self) -> bytes:
        """Returns the response as a frame with its size, with the current fields of `message`.

        Raises EncodeError if the version cannot express the message.
        """
        header: bytes | memoryview
        if self.message is None:
            header = _CORRELATION_ID.pack(self.correlation_id)
        else:
            header_version = response_header_version(type(self.message), self.version)
            encoded = response_header(header_version, self.correlation_id, self.header_tags)
            header = original_or_encoded(ResponseHeader, header_version, encoded, self.head)
        return frame(header, body_bytes(self.message, self.version, self.body), self.trailing)


class PendingRequest(NamedTuple):
    """Describes a request that has no response yet.

    `response` is the class of its response; None means Kafka's class for the api key. `context`
    belongs to the sender of the request.
    """

    api_key: int
    version: int
    correlation_id: int
    response: type[Response] | None = None
    context: Any = None


class PendingRequests:
    """Holds the requests of one connection that wait for a response, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[PendingRequest] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(self._waiting)

    @property
    def oldest(self) -> PendingRequest | None:
        """Returns the request that the next response answers; None if no request is pending."""
        return self._waiting[0] if self._waiting else None

    def expect(self, pending: PendingRequest) -> None:
        """Adds a request that will be answered."""
        self._waiting.append(pending)

    def restore(self, pending: PendingRequest) -> None:
        """Puts a removed request back in front of all pending requests.

        The response to this request was not read.
        """
        self._waiting.appendleft(pending)

    def remove(self, pending: PendingRequest) -> None:
        """Removes a request. Raises ValueError if it is not pending."""
        self._waiting.remove(pending)

    def take(self) -> PendingRequest | None:
        """Removes and returns the oldest request; None if no request is pending."""
        return self._waiting.popleft() if self._waiting else None

    def match(self, data: bytes) -> ReceivedResponse:
        """Reads the response to the oldest pending request, and removes this request.

        Raises ProtocolError if no request is pending, or if the response has another correlation id
        than the oldest request; the caller must then close the connection. Raises DecodeError if
        the response cannot be read; the caller may keep the connection.
        """
        cls, api_key, version = self._take_oldest(data)
        return read_response_of(cls, data, api_key, version)

    def match_message(self, data: bytes) -> Response | None:
        """Does the same as `match`, but returns only the message.

        The message may be None, as in `ReceivedResponse`. Raises the errors of `match`.
        """
        cls, api_key, version = self._take_oldest(data)
        return read_response_message(cls, data, api_key, version)

    def _take_oldest(self, data: bytes) -> tuple[type[Response] | None, int, int]:
        """Removes the oldest request; returns the class, api key and version of its response.

        Raises ProtocolError if no request is pending, or if the response `data` does not have the
        correlation id of the oldest request.
        """
        if not self._waiting:
            raise ProtocolError(
                f"a response of {len(data)} bytes arrived without a pending request"
            )
        api_key, version, correlation_id, cls, _ = self._waiting.popleft()
        if cls is None:
            cls = response_class(api_key)
        if len(data) < _CORRELATION_ID.size or _CORRELATION_ID.unpack_from(data)[0] != (
            correlation_id
        ):
            _refuse_correlation(data, correlation_id, name_of(cls, api_key), version)
        return cls, api_key, version


def _refuse_correlation(data: bytes, expected: int, name: str, version: int) -> NoReturn:
    """Raises ProtocolError for a response whose correlation id is not `expected`, or is missing."""
    if len(data) < _CORRELATION_ID.size:
        found = f"is {len(data)} bytes long, too few for a correlation id"
    else:
        (correlation_id,) = _CORRELATION_ID.unpack_from(data)
        found = f"has correlation id {correlation_id}, but {expected} must come next"
    raise ProtocolError(f"the answer {name} v{version} {found}; the connection is out of step")


def body_bytes(
    message: Message | None, version: int, received: bytes | memoryview
) -> bytes | memoryview:
    """Returns `received` if `message` is None or was not changed, else the encoded message."""
    if message is None:
        return received
    return original_or_encoded(type(message), version, message.encode(version), received)


def original_or_encoded(
    cls: type[Message], version: int, encoded: bytes, received: bytes | memoryview
) -> bytes | memoryview:
    """Returns `received` if its message is unchanged, else `encoded`.

    `encoded` is kproto's encoding of a message that was decoded from `received`, and then may have
    been changed. The message is unchanged if kproto encodes the message in `received` as `encoded`.
    The received bytes of an unchanged message may differ from `encoded`: a length may have more
    bytes than needed, and true may be any byte except 0. Bytes are compared instead of messages,
    because 0.0 equals -0.0, and NaN does not equal itself.
    """
    if not received or encoded == received:
        return encoded
    try:
        decoded: Message = cls.decode(received, version)
    except DecodeError:
        if cls is not ApiVersionsResponse:
            return encoded  # the version or the message was changed
        decoded = _REFUSAL
    return received if decoded.encode(version) == encoded else encoded


def name_of(cls: type[Message] | None, api_key: int) -> str:
    """Returns the name of `cls` for logs and errors; `api key N` if `cls` is None."""
    return f"api key {api_key}" if cls is None else cls.__name__


def read_response(
    data: BytesLike, api_key: int, version: int, classes: MessageClasses = KAFKA_MESSAGES
) -> ReceivedResponse:
    """Reads the response to a request from `data`, the frame without its size.

    `api_key` and `version` are those of the request, because a response contains neither. Raises
    DecodeError for invalid bytes.
    """
    return read_response_of(classes.response(api_key), data, api_key, version)


def read_response_of(
    cls: type[Response] | None, data: BytesLike, api_key: int, version: int
) -> ReceivedResponse:
    """Reads a response as `read_response` does; `cls` is its class, None if unknown."""
    if type(data) is not bytes:
        data = copy_octets(data, name_of(cls, api_key))
    if len(data) < _CORRELATION_ID.size:
        raise DecodeError(
            f"{len(data)} bytes are too few for a correlation id", message=name_of(cls, api_key)
        )
    (correlation_id,) = _CORRELATION_ID.unpack_from(data)
    size = len(data)
    if cls is None or not _can_be_read(cls, version, data):
        body = memoryview(data)[_CORRELATION_ID.size :]
        return ReceivedResponse(
            api_key, version, correlation_id, None, size, b"", body=body, cls=cls
        )
    tags, start = _read_response_tags(cls, data, version)
    if _is_api_versions(cls) and version > 0 and _is_unsupported(data, start):
        return _unsupported_api_versions(correlation_id, data, start)
    message, end = cls.decode_from(data, start, version)
    body = memoryview(data)[start:end]
    return ReceivedResponse(
        api_key, version, correlation_id, message, size, data[end:], tags, body, cls, data[:start]
    )


def read_response_message(
    cls: type[Response] | None, data: bytes, api_key: int, version: int
) -> Response | None:
    """Returns only the message of `read_response_of`, for callers that need nothing else."""
    if cls is None or version not in cls.VALID_VERSIONS or api_key == API_VERSIONS:
        return read_response_of(cls, data, api_key, version).message
    _, start = _read_response_tags(cls, data, version)
    return cls.decode_from(data, start, version)[0]


def _read_response_tags(
    cls: type[Response], data: bytes, version: int
) -> tuple[tuple[RawTaggedField, ...], int]:
    """Returns the tagged fields of a response's header, and the start of its body.

    Raises DecodeError for an invalid header.
    """
    start = _CORRELATION_ID.size
    if not response_header_version(cls, version):
        return NO_TAGS, start
    if data[start : start + 1] == b"\0":  # no tagged field, the usual case
        return NO_TAGS, start + 1
    header, start = ResponseHeader.decode_from(data, 0, 1)
    return tuple(header._unknown_tags or ()), start  # the property would make a list


def copy_octets(data: object, name: str) -> bytes:
    try:
        return octets(data)
    except (TypeError, ValueError) as error:
        raise DecodeError(str(error), message=name) from None


def _can_be_read(cls: type[Response], version: int, data: bytes) -> bool:
    """Returns True if the layout of the response is known.

    If the ApiVersions request had an unknown version, the layout is known only for a response with
    error 35, which has the layout of v0.
    """
    if version in cls.VALID_VERSIONS:
        return True
    return _is_api_versions(cls) and _is_unsupported(data, _CORRELATION_ID.size)


def _is_api_versions(cls: type[Response]) -> bool:
    """Returns True for ApiVersionsResponse, also if it was generated in another package.

    Another response may have the api key 18 in a protocol that is not Kafka's.
    """
    is_key = cls.API_KEY == API_VERSIONS
    return is_key and cls._generated().__name__ == ApiVersionsResponse.__name__


def _is_unsupported(data: bytes, start: int) -> bool:
    return data[start : start + 2] == UNSUPPORTED_VERSION.to_bytes(2, "big")


def _unsupported_api_versions(correlation_id: int, data: bytes, start: int) -> ReceivedResponse:
    """Reads an ApiVersions response with error 35 (UNSUPPORTED_VERSION).

    The response has the layout of v0 or is malformed (see `negotiation.fallback_version`).
    """
    body = data[start:]
    try:
        message, end = ApiVersionsResponse.decode_from(body, 0, 0)
    except DecodeError:
        message, end = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION), 2
    return ReceivedResponse(
        API_VERSIONS,
        0,
        correlation_id,
        message,
        len(data),
        body[end:],
        body=body[:end],
        cls=ApiVersionsResponse,
    )
