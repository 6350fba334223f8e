"""The two sides of a connection: what was asked, what an answer belongs to, what it says.

`ClientConnection` makes the frames of requests and reads those of responses; `ServerConnection`
the reverse. Both keep to Kafka's order: on one connection, responses come in the order of the
requests. A proxy uses the reading halves of both.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final, NamedTuple, TypeVar

from ..messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.base import Message, Request, Response
from ..messages.produce_request import ProduceRequest
from ..wire.errors import DecodeError, ProtocolError
from .framing import frame
from .headers import (
    API_VERSIONS,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
    request_class,
    response_class,
)
from .negotiation import UNSUPPORTED_VERSION

__all__ = [
    "ClientConnection",
    "PendingRequest",
    "PendingRequests",
    "ReceivedRequest",
    "ReceivedResponse",
    "ServerConnection",
    "expects_response",
]

R = TypeVar("R", bound=Response)

#: Correlation ids count up to the largest int32, and begin again at 0.
_LAST_CORRELATION_ID: Final = 0x7FFFFFFF

#: What every response begins with, whatever the version of its header.
_CORRELATION_ID: Final = struct.Struct(">i")

#: From this version on, AddPartitionsToTxn is about several transactions (KIP-890).
_TXN_BATCHES: Final = 4


class PendingRequest(NamedTuple):
    """A request that is not answered yet."""

    api_key: int
    version: int
    correlation_id: int


class ReceivedResponse(NamedTuple):
    """A response; `version` is the one its bytes are in, `trailing` what stood behind its body.

    `message` is None when no definition knows the api key or version of what was asked. `size` is
    that of the frame, in bytes.
    """

    api_key: int
    version: int
    correlation_id: int
    message: Response | None
    size: int
    trailing: bytes

    @property
    def name(self) -> str:
        """The response's name, or its api key where it has none."""
        cls = response_class(self.api_key)
        return f"api key {self.api_key}" if cls is None else cls.__name__


class ReceivedRequest(NamedTuple):
    """A request; `message` is None when no definition knows its api key or version.

    `size` is that of the frame, in bytes; `trailing` what stood behind its body.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Request[Response] | None
    size: int
    trailing: bytes

    @property
    def name(self) -> str:
        """The request's name, or its api key where it has none."""
        cls = request_class(self.api_key)
        return f"api key {self.api_key}" if cls is None else cls.__name__


def expects_response(request: Message, version: int) -> bool:
    """False for the requests that no broker answers.

    They are a Produce with acks=0, and an AddPartitionsToTxn that holds no transaction in a
    version that can hold several.
    """
    if isinstance(request, ProduceRequest):
        return request.acks != 0
    if isinstance(request, AddPartitionsToTxnRequest) and version >= _TXN_BATCHES:
        return bool(request.transactions)
    return True


class PendingRequests:
    """The requests of one connection that wait for an answer, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[PendingRequest] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, pending: PendingRequest) -> None:
        """Take note of a request that will be answered."""
        self._waiting.append(pending)

    def match(self, data: bytes) -> ReceivedResponse:
        """Read the answer to the oldest request.

        Raises ProtocolError when nothing was asked or the correlation id is another's: the stream
        can then no longer be trusted, and the connection must be closed. Raises DecodeError when
        the answer cannot be read; the connection may go on.
        """
        if not self._waiting:
            raise ProtocolError(f"a response of {len(data)} bytes came that no request waits for")
        api_key, version, correlation_id = self._waiting.popleft()
        cls = response_class(api_key)
        _check_correlation(data, correlation_id, api_key, version)
        if cls is None or not _can_be_read(cls, version, data):
            return ReceivedResponse(api_key, version, correlation_id, None, len(data), b"")
        _, start = parse_response_header(cls, version, data)
        if api_key == API_VERSIONS and version > 0 and _is_unsupported(data, start):
            return _unsupported_api_versions(correlation_id, data, start)
        message, end = cls.decode_from(data, start, version)
        return ReceivedResponse(api_key, version, correlation_id, message, len(data), data[end:])


def _check_correlation(data: bytes, expected: int, api_key: int, version: int) -> None:
    """Raise ProtocolError unless the response is the one that must come next."""
    if len(data) < _CORRELATION_ID.size:
        found = f"is {len(data)} bytes long, too few for a correlation id"
    elif (correlation_id := _CORRELATION_ID.unpack_from(data)[0]) != expected:
        found = f"has correlation id {correlation_id} where {expected} must come next"
    else:
        return
    cls = response_class(api_key)
    name = f"api key {api_key}" if cls is None else cls.__name__
    raise ProtocolError(f"the answer {name} v{version} {found}; the connection is out of step")


def _can_be_read(cls: type[Response], version: int, data: bytes) -> bool:
    """Whether the definitions know the form of the answer.

    Error 35 to an ApiVersions of the future comes in the form of v0, which they do.
    """
    if version in cls.VALID_VERSIONS:
        return True
    return cls.API_KEY == API_VERSIONS and _is_unsupported(data, _CORRELATION_ID.size)


def _is_unsupported(data: bytes, start: int) -> bool:
    return data[start : start + 2] == UNSUPPORTED_VERSION.to_bytes(2, "big")


def _unsupported_api_versions(correlation_id: int, data: bytes, start: int) -> ReceivedResponse:
    """Error 35 comes in the form of v0, or in none (see `negotiation.fallback_version`)."""
    body = data[start:]
    try:
        message, end = ApiVersionsResponse.decode_from(body, 0, 0)
    except DecodeError:
        message, end = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION), 2
    return ReceivedResponse(API_VERSIONS, 0, correlation_id, message, len(data), body[end:])


class ClientConnection:
    """The client's side of one connection."""

    def __init__(self, client_id: str | None = None) -> None:
        self.client_id = client_id
        self.pending = PendingRequests()
        self._next_correlation_id = 0

    def send(self, request: Request[R], version: int) -> tuple[int, bytes]:
        """The correlation id of `request` and its frame, which must be written in this order.

        Raises EncodeError, and then nothing is expected.
        """
        cls = type(request)
        body = request.encode(version)
        correlation_id = self._next_correlation_id
        header = encode_request_header(cls, version, correlation_id, self.client_id)
        self._next_correlation_id = (
            0 if correlation_id == _LAST_CORRELATION_ID else (correlation_id + 1)
        )
        if expects_response(request, version):
            self.pending.expect(PendingRequest(cls.API_KEY, version, correlation_id))
        return correlation_id, frame(header, body)

    def receive(self, data: bytes) -> ReceivedResponse:
        """Read a response frame; see `PendingRequests.match` for what it raises."""
        return self.pending.match(data)


class ServerConnection:
    """The broker's side of one connection."""

    def receive(self, data: bytes) -> ReceivedRequest:
        """Read a request frame.

        Bytes behind the body are kept in `trailing`: frames of real clients carry some, and
        brokers ignore them. Raises DecodeError.
        """
        header = parse_request_header(data)
        cls = request_class(header.api_key)
        message: Request[Response] | None = None
        end = len(data)
        if cls is not None and header.api_version in cls.VALID_VERSIONS:
            message, end = cls.decode_from(data, header.body, header.api_version)
        return ReceivedRequest(
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            message,
            len(data),
            data[end:],
        )

    def pending(self, request: ReceivedRequest) -> PendingRequest | None:
        """The answer to wait for after `request`; None when there will be none.

        A request that no definition knows is taken to be one that is answered.
        """
        message = request.message
        if message is not None and not expects_response(message, request.version):
            return None
        return PendingRequest(request.api_key, request.version, request.correlation_id)

    def send(
        self, request: ReceivedRequest, response: Response, version: int | None = None
    ) -> bytes:
        """The frame of the answer to `request`, in its version unless another is named."""
        used = request.version if version is None else version
        header = encode_response_header(type(response), used, request.correlation_id)
        return frame(header, response.encode(used))
