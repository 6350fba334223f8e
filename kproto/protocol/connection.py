"""The client's and the broker's side of a connection, without I/O.

`ClientConnection` encodes requests into frames and reads the responses; `ServerConnection` reads
requests (`read_request`) and encodes the responses. On a connection, responses come in the order of
the requests, as Kafka guarantees. A proxy uses the reading methods of both classes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ..messages.base import Message, Request, Response
from ..messages.request_header import RequestHeader
from ..wire.buffers import BytesLike
from ..wire.errors import ConfigurationError, EncodeError
from ..wire.tags import RawTaggedField
from .framing import frame
from .headers import (
    API_KEY_AND_VERSION_BYTES,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    request_class,
    request_header,
    request_header_version,
)
from .message_classes import KAFKA_MESSAGES, MessageClasses, missing_half, response_of
from .received import (
    NO_TAGS,
    PendingRequest,
    PendingRequests,
    ReceivedResponse,
    body_bytes,
    copy_octets,
    name_of,
    original_or_encoded,
)

__all__ = [
    "ClientConnection",
    "PendingRequest",
    "PendingRequests",
    "ReceivedRequest",
    "ReceivedResponse",
    "ServerConnection",
    "expects_response",
    "read_request",
]

R = TypeVar("R", bound=Response)

#: Correlation ids count up to the largest int32, and then restart at 0.
_LAST_CORRELATION_ID: Final = 0x7FFFFFFF

#: The correlation id; every response begins with it, in any version of its header.
_CORRELATION_ID: Final = struct.Struct(">i")

#: The requests that brokers may leave without an answer, by api key.
_UNANSWERED: Final[dict[int | None, str]] = {0: "ProduceRequest", 24: "AddPartitionsToTxnRequest"}

#: From this version on, AddPartitionsToTxn has a list of transactions (KIP-890).
_TXN_BATCHES: Final = 4


#: The generated names of request classes, cached because every request needs one.
_generated_names: Final[dict[type, str]] = {}


def _generated_name(cls: type[Message]) -> str:
    # Classes are compared by name, because a user may have generated Kafka's messages in another
    # package.
    try:
        return _generated_names[cls]
    except KeyError:
        name = _generated_names[cls] = cls._generated().__name__
        return name


def expects_response(request: Message, version: int) -> bool:
    """Returns True if brokers answer the request.

    No broker answers Produce with acks=0, nor AddPartitionsToTxn (v4 and later) if `transactions`
    is empty.
    """
    name = _UNANSWERED.get(request.API_KEY)
    if name is None or _generated_name(type(request)) != name:
        return True
    if name == "ProduceRequest":
        return bool(getattr(request, "acks", 1))
    return version < _TXN_BATCHES or bool(getattr(request, "transactions", True))


class ClientConnection:
    """Implements the client's side of one connection."""

    def __init__(self, client_id: str | None = None) -> None:
        self.client_id = client_id
        self.pending = PendingRequests()
        self._next_correlation_id = 0
        #: The correlation id of the last request; -1 before the first.
        self.last_correlation_id = -1
        #: The bytes before and after the correlation id in the header of a request, by the class
        #: and version of the request.
        self._heads: dict[tuple[type[Message], int], tuple[bytes, bytes]] = {}

    def send(self, request: Request[R], version: int, context: object = None) -> tuple[int, bytes]:
        """Returns the correlation id of `request` and its frame; frames must be written in order.

        `context` is stored with the pending request. A request without a response (see
        `expects_response`) does not become pending.

        Raises EncodeError if the request cannot be encoded. Raises ConfigurationError if the
        package of the request class has no response to it in `version`. After an error the request
        is not pending.
        """
        cls = type(request)
        answer = self._answer(cls, version)
        body = request.encoded_pieces(version)
        expected = answer if expects_response(request, version) else None
        correlation_id = self._next_correlation_id
        return correlation_id, self._frame(cls, version, expected, body, context)

    def send_encoded(
        self,
        cls: type[Request[R]],
        version: int,
        body: Sequence[bytes],
        context: object = None,
    ) -> bytes:
        """Returns the frame of a request with an encoded `body`; the request must get a response.

        Raises the errors of `send`, except errors in the body.
        """
        return self._frame(cls, version, self._answer(cls, version), body, context)

    def _answer(self, cls: type[Request[R]], version: int) -> type[Response] | None:
        """Returns the response class of a request class.

        Raises ConfigurationError if no response class can read the response in `version`. Does not
        raise for an invalid `version` of the request, because `encode` does.
        """
        answer = response_of(cls)
        if answer is None or version not in answer.VALID_VERSIONS:
            _refuse_unanswerable(cls, answer, version)
        return answer

    def _frame(
        self,
        cls: type[Request[R]],
        version: int,
        answer: type[Response] | None,
        body: Sequence[bytes],
        context: object,
    ) -> bytes:
        """Returns the frame of a request with the next correlation id.

        Adds the request to `pending` if `answer`, the class of its response, is not None.
        """
        correlation_id = self._next_correlation_id
        prefix, suffix = self._heads.get((cls, version)) or self._head(cls, version)
        data = frame(prefix, _CORRELATION_ID.pack(correlation_id), suffix, *body)
        self.last_correlation_id = correlation_id
        self._next_correlation_id = (
            0 if correlation_id == _LAST_CORRELATION_ID else (correlation_id + 1)
        )
        if answer is not None:
            self.pending.expect(
                PendingRequest(cls.API_KEY, version, correlation_id, answer, context)
            )
        return data

    def _head(self, cls: type[Message], version: int) -> tuple[bytes, bytes]:
        """Returns the header's bytes before and after the correlation id.

        Raises EncodeError if the client id is too long.
        """
        header = encode_request_header(cls, version, 0, self.client_id)
        at = API_KEY_AND_VERSION_BYTES
        head = header[:at], header[at + _CORRELATION_ID.size :]
        self._heads[cls, version] = head
        return head

    def receive(self, data: bytes) -> ReceivedResponse:
        """Reads a response frame without its size; raises the errors of `PendingRequests.match`."""
        return self.pending.match(data)


def _refuse_unanswerable(
    cls: type[Request[R]], answer: type[Response] | None, version: int
) -> None:
    """Raises ConfigurationError for a request whose response cannot be read.

    `answer` is the class of the response: either it is None, or it lacks `version`. If the request
    lacks `version` too, does nothing, because encoding the request raises the error.
    """
    if version not in cls.VALID_VERSIONS:
        return  # `encode` raises for it
    if answer is None:
        what = missing_half(cls)
    else:
        what = f"{answer.__name__} has no version {version}, so that no answer can be read"
    raise ConfigurationError(f"{cls.__name__} v{version}: {what}")


class ReceivedRequest(NamedTuple):
    """A request; `message` is None if no definition has its api key and version.

    - `size`: the bytes in the frame, without the four bytes of its size;
    - `trailing`: the bytes after the body;
    - `header_tags`: unknown tagged fields of the header;
    - `body`: the received body, or all bytes after the header if `message` is None;
    - `cls`: the request class of the api key, None if there is none;
    - `head`: the received header.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Request[Any] | None
    size: int
    trailing: bytes
    header_tags: tuple[RawTaggedField, ...] = NO_TAGS
    body: bytes | memoryview = b""
    cls: type[Request[Response]] | None = None
    head: bytes = b""

    @property
    def name(self) -> str:
        """Returns the request's name, or `api key N` if no definition has the api key."""
        return name_of(self.cls or request_class(self.api_key), self.api_key)

    def to_frame(self) -> bytes:
        """Returns the request as a frame with its size, with the current fields of `message`.

        Raises EncodeError if the version cannot express the message.
        """
        cls = self.cls or request_class(self.api_key)
        header_version = 1 if cls is None else request_header_version(cls, self.version)
        encoded = request_header(
            header_version,
            self.api_key,
            self.version,
            self.correlation_id,
            self.client_id,
            self.header_tags,
        )
        header = original_or_encoded(RequestHeader, header_version, encoded, self.head)
        return frame(header, body_bytes(self.message, self.version, self.body), self.trailing)


def read_request(data: BytesLike, classes: MessageClasses = KAFKA_MESSAGES) -> ReceivedRequest:
    """Returns the request in a frame without its size. Raises DecodeError for invalid bytes."""
    if type(data) is not bytes:
        data = copy_octets(data, "RequestHeader")
    header = parse_request_header(data, classes)
    cls = classes.request(header.api_key)
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
        header.unknown_tagged_fields,
        memoryview(data)[header.body : end],
        cls,
        data[: header.body],
    )


class ServerConnection:
    """Implements the broker's side of one connection.

    `classes` are the requests that the connection can read, and their responses.
    """

    def __init__(self, classes: MessageClasses = KAFKA_MESSAGES) -> None:
        self.classes = classes
        #: The response classes that were checked, each with its api key.
        self._checked: dict[type, int] = {}

    def receive(self, data: bytes) -> ReceivedRequest:
        """Reads a request frame, without its size.

        Stores bytes after the body in `trailing`: some clients send such bytes, and brokers ignore
        them. Raises DecodeError for invalid bytes.
        """
        return read_request(data, self.classes)

    def pending(self, request: ReceivedRequest) -> PendingRequest | None:
        """Returns the `PendingRequest` to respond to; None if the request must get no response.

        A request of an unknown api key or version is assumed to get a response.
        """
        message = request.message
        if message is not None and not expects_response(message, request.version):
            return None
        response = self.classes.response(request.api_key)
        return PendingRequest(request.api_key, request.version, request.correlation_id, response)

    def send(
        self, request: ReceivedRequest, response: Response, version: int | None = None
    ) -> bytes:
        """Returns the frame of the response; `version` is by default the version of `request`.

        Raises EncodeError if `response` cannot be encoded or belongs to another request.
        """
        used = request.version if version is None else version
        if self._checked.get(type(response)) != request.api_key:
            self._check_answer(request, response, used)
        header = encode_response_header(type(response), used, request.correlation_id)
        return frame(header, response.encode(used))

    def _check_answer(self, request: ReceivedRequest, response: object, version: int) -> None:
        """Raises EncodeError unless `response` is the response to `request`.

        Accepts the generated class of any package, if its message has the same name.
        """
        wanted = self.classes.response(request.api_key)
        if isinstance(response, Response) and request.api_key == response.API_KEY:
            # Compares names, because a user may have generated Kafka's messages in another package.
            name = type(response)._generated().__name__
            if wanted is None or name == wanted._generated().__name__:
                self._checked[type(response)] = request.api_key
                return
        right = "" if wanted is None else f"; {wanted.__name__} is"
        raise EncodeError(
            f"it is no answer to {request.name}{right}",
            message=type(response).__name__,
            version=version,
        )
