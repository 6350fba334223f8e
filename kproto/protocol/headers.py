"""Request and response headers: which version each message has, and putting them in front.

The version of a header follows from the api key and version alone. Two exceptions are Kafka's:
an ApiVersions response always has header v0, so that a client can read it before it knows what
the broker speaks (KIP-511), and ControlledShutdown v0 has a request header without client id.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from .. import messages
from ..messages.base import Message, Request, Response
from ..messages.request_header import RequestHeader
from ..messages.response_header import ResponseHeader
from ..wire.errors import DecodeError
from ..wire.tags import RawTaggedField

__all__ = [
    "API_VERSIONS",
    "PRODUCE",
    "ParsedHeader",
    "encode_request_header",
    "encode_response_header",
    "parse_request_header",
    "parse_response_header",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
]

PRODUCE: Final = 0
CONTROLLED_SHUTDOWN: Final = 7
API_VERSIONS: Final = 18

_KEY_VERSION_ID = struct.Struct(">hhi")


class ParsedHeader(NamedTuple):
    """A request header, whatever its version; `body` is the offset at which the body begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tagged_fields: tuple[RawTaggedField, ...]
    body: int


def request_class(api_key: int) -> type[Request[Response]] | None:
    """The request with that api key; None when the definitions have none."""
    names = messages.API_KEYS.get(api_key)
    found: type[Request[Response]] | None = getattr(messages, names[0]) if names else None
    return found


def response_class(api_key: int) -> type[Response] | None:
    """The response with that api key; None when the definitions have none."""
    names = messages.API_KEYS.get(api_key)
    found: type[Response] | None = getattr(messages, names[1]) if names else None
    return found


def request_header_version(cls: type[Message], version: int) -> int:
    """The version of the header in front of a request."""
    if cls.API_KEY == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if version in cls.FLEXIBLE_VERSIONS else 1


def response_header_version(cls: type[Message], version: int) -> int:
    """The version of the header in front of a response."""
    if cls.API_KEY == API_VERSIONS:
        return 0
    return 1 if version in cls.FLEXIBLE_VERSIONS else 0


def encode_request_header(
    cls: type[Message], version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The header of a request of class `cls`. Raises EncodeError on a client id too long."""
    assert cls.API_KEY is not None
    header = RequestHeader(
        request_api_key=cls.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return header.encode(request_header_version(cls, version))


def parse_request_header(data: bytes) -> ParsedHeader:
    """Read the header of a request frame.

    The header of an api key or version that no definition knows is read as v1, so that a broker
    can still say what it was asked. Raises DecodeError.
    """
    if len(data) < _KEY_VERSION_ID.size:
        raise DecodeError(f"a request of {len(data)} bytes has no header", message="RequestHeader")
    api_key, version, correlation_id = _KEY_VERSION_ID.unpack_from(data)
    cls = request_class(api_key)
    header_version = 1 if cls is None else request_header_version(cls, version)
    if header_version == 0:
        return ParsedHeader(api_key, version, correlation_id, None, (), _KEY_VERSION_ID.size)
    header, end = RequestHeader.decode_from(data, 0, header_version)
    tags = tuple(header.unknown_tagged_fields)
    return ParsedHeader(api_key, version, correlation_id, header.client_id, tags, end)


def encode_response_header(cls: type[Message], version: int, correlation_id: int) -> bytes:
    """The header of a response of class `cls`."""
    header = ResponseHeader(correlation_id=correlation_id)
    return header.encode(response_header_version(cls, version))


def parse_response_header(cls: type[Message], version: int, data: bytes) -> tuple[int, int]:
    """The correlation id, and the offset at which the body begins. Raises DecodeError."""
    header, end = ResponseHeader.decode_from(data, 0, response_header_version(cls, version))
    return header.correlation_id, end
