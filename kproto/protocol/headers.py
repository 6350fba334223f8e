"""Reads and writes request and response headers, and chooses their versions.

The version of a header follows from the api key and version: flexible versions of a message have
request header v2 and response header v1; other versions have request header v1 and response header
v0. Kafka has two exceptions. An ApiVersions response always has header v0, so that a client can
read it before the versions are negotiated (KIP-511). ControlledShutdown v0 has request header v0,
which has no client id.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from ..messages.base import Message, Request, Response
from ..messages.request_header import RequestHeader
from ..messages.response_header import ResponseHeader
from ..wire.errors import DecodeError
from ..wire.tags import RawTaggedField
from .message_classes import KAFKA_MESSAGES, MessageClasses

__all__ = [
    "API_KEY_AND_VERSION_BYTES",
    "API_VERSIONS",
    "PRODUCE",
    "ParsedHeader",
    "encode_request_header",
    "encode_response_header",
    "parse_request_header",
    "parse_response_header",
    "request_class",
    "request_header",
    "request_header_version",
    "response_class",
    "response_header",
    "response_header_version",
]

PRODUCE: Final = 0
CONTROLLED_SHUTDOWN: Final = 7
API_VERSIONS: Final = 18

#: The bytes before the correlation id in a request header of any version.
API_KEY_AND_VERSION_BYTES: Final = 4

_KEY_VERSION_ID = struct.Struct(">hhi")


class ParsedHeader(NamedTuple):
    """Holds a request header of any version; `body` is the offset at which the body begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tagged_fields: tuple[RawTaggedField, ...]
    body: int


def request_class(api_key: int) -> type[Request[Response]] | None:
    """Returns Kafka's request class with this api key; None if no definition has the key."""
    return KAFKA_MESSAGES.request(api_key)


def response_class(api_key: int) -> type[Response] | None:
    """Returns Kafka's response class with this api key; None if no definition has the key."""
    return KAFKA_MESSAGES.response(api_key)


def request_header_version(cls: type[Message], version: int) -> int:
    """Returns the version of the header in front of a request."""
    if cls.API_KEY == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if version in cls.FLEXIBLE_VERSIONS else 1


def response_header_version(cls: type[Message], version: int) -> int:
    """Returns the version of the header in front of a response."""
    if cls.API_KEY == API_VERSIONS:
        return 0
    return 1 if version in cls.FLEXIBLE_VERSIONS else 0


def encode_request_header(
    cls: type[Message], version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Returns the header of a request. Raises EncodeError for a client id that is too long."""
    assert cls.API_KEY is not None
    header_version = request_header_version(cls, version)
    return request_header(header_version, cls.API_KEY, version, correlation_id, client_id)


def request_header(
    header_version: int,
    api_key: int,
    version: int,
    correlation_id: int,
    client_id: str | None,
    tags: Iterable[RawTaggedField] = (),
) -> bytes:
    """Returns a request header in one of its versions, 0 to 2; only v2 has tagged fields."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    if tags:
        header.unknown_tagged_fields = list(tags)
    return header.encode(header_version)


def parse_request_header(data: bytes, classes: MessageClasses = KAFKA_MESSAGES) -> ParsedHeader:
    """Reads the header of a request frame.

    The header of an unknown api key or version is read as v1, so that a broker can still report the
    request. Raises DecodeError for invalid bytes.
    """
    if len(data) < _KEY_VERSION_ID.size:
        raise DecodeError(f"a request of {len(data)} bytes has no header", message="RequestHeader")
    api_key, version, correlation_id = _KEY_VERSION_ID.unpack_from(data)
    cls = classes.request(api_key)
    header_version = 1 if cls is None else request_header_version(cls, version)
    if header_version == 0:
        return ParsedHeader(api_key, version, correlation_id, None, (), _KEY_VERSION_ID.size)
    header, end = RequestHeader.decode_from(data, 0, header_version)
    tags = tuple(header._unknown_tags or ())  # the property would make a list
    return ParsedHeader(api_key, version, correlation_id, header.client_id, tags, end)


def encode_response_header(cls: type[Message], version: int, correlation_id: int) -> bytes:
    """Returns the header of a response of class `cls`."""
    return response_header(response_header_version(cls, version), correlation_id)


def response_header(
    header_version: int, correlation_id: int, tags: Iterable[RawTaggedField] = ()
) -> bytes:
    """Returns a response header in one of its versions, 0 or 1; only v1 has tagged fields."""
    header = ResponseHeader(correlation_id=correlation_id)
    if tags:
        header.unknown_tagged_fields = list(tags)
    return header.encode(header_version)


def parse_response_header(cls: type[Message], version: int, data: bytes) -> tuple[int, int]:
    """Returns the correlation id, and the offset at which the body begins.

    Raises DecodeError for invalid bytes.
    """
    header, end = ResponseHeader.decode_from(data, 0, response_header_version(cls, version))
    return header.correlation_id, end
