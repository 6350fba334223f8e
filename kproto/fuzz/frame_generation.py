"""Generates an endless sequence of frames: valid requests, broken requests, and other bytes.

The same seed gives the same sequence. `broker` sends the frames.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..messages import ProduceRequest
from ..protocol.headers import encode_request_header, request_class
from ..testing.instances import random_instances
from .case import MessageVersion
from .explicit_defaults import with_explicit_defaults
from .lenient_reader import walk_message
from .mutations import MUTATIONS, mutate, mutations

__all__ = ["CLIENT_ID", "FRAME_KINDS", "Frame", "generate_frames"]

#: The kinds of frames, in the order in which they alternate, with a description each.
FRAME_KINDS: Final[dict[str, str]] = {
    "sound": "a valid request with values at random, also with explicit defaults of tagged fields",
    "body": "a request with an error in its body",
    "header": "a request with an error in its header",
    "size": "a frame with a wrong size field",
    "cut": "a frame that ends too early",
    "unknown": "an api key or a version that the broker does not have",
    "several": "several requests in one write, one of them broken",
    "noise": "bytes that are no request",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes to write to a connection.

    `api_key`, `version` and `correlation_id` are those of the request in the bytes. They are None
    if the request is so broken that its response is not known. `name` is the name of the request.
    """

    kind: str
    data: bytes
    name: str = ""
    api_key: int | None = None
    version: int | None = None
    correlation_id: int | None = None


#: The client id in the headers of requests.
CLIENT_ID: Final = "kproto-fuzz"

#: Bytes that clients of other protocols send first: HTTP, TLS, and an empty line.
_NOISE: Final = (b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("160301020001000001fc0303"), b"\n")

_SIZE: Final = struct.Struct(">i")


def generate_frames(
    versions: dict[int, range], seed: int, kinds: tuple[str, ...]
) -> Iterator[Frame]:
    """Yields an endless sequence of frames, one of each of `kinds` in turn.

    `versions` are the versions that the broker supports, by api key.
    """
    source = random.Random(f"{seed} frames")  # noqa: S311 - values for tests, not secrets
    message_versions = [
        (MessageVersion(cls._definition().name, version), cls)
        for key, supported in sorted(versions.items())
        if (cls := request_class(key)) is not None
        for version in supported
        if version in cls.VALID_VERSIONS
    ]
    values: dict[MessageVersion, Iterator[Any]] = {}
    number = 0
    while True:
        for kind in kinds:
            message_version, cls = source.choice(message_versions)
            if message_version not in values:
                values[message_version] = random_instances(cls, message_version.version, seed=seed)
            number += 1
            value = next(values[message_version])
            if isinstance(value, ProduceRequest) and value.acks == 0:
                value.acks = 1  # with 0 there is no response, and an error closes the connection
            body = value.encode(message_version.version)
            header = encode_request_header(cls, message_version.version, number, CLIENT_ID)
            request = _Request(message_version, cls.API_KEY, number, header, body)
            yield _MAKERS[kind](request, source)


@dataclass(frozen=True, slots=True)
class _Request:
    """A valid request, from which the functions in `_MAKERS` make a frame."""

    message_version: MessageVersion
    api_key: int
    number: int
    header: bytes
    body: bytes

    def frame(self, kind: str, data: bytes) -> Frame:
        return Frame(
            kind,
            data,
            self.message_version.name,
            self.api_key,
            self.message_version.version,
            self.number,
        )


def _sized(content: bytes) -> bytes:
    return _SIZE.pack(len(content)) + content


def _valid(request: _Request, source: random.Random) -> Frame:
    """Returns the valid request, every second time with explicit defaults of tagged fields."""
    body = request.body
    if source.random() < 0.5:
        sections = walk_message(request.message_version.shape, body).tag_sections
        body = with_explicit_defaults(body, sections, source) or body
    return request.frame("sound", _sized(request.header + body))


def _body(request: _Request, source: random.Random) -> Frame:
    length_fields = walk_message(request.message_version.shape, request.body).length_fields
    made = mutate(source.choice(MUTATIONS), request.body, length_fields, source)
    if made is None:
        made = next(mutations([request.body], source))
    return request.frame("body", _sized(request.header + made))


def _header(request: _Request, source: random.Random) -> Frame:
    made = next(mutations([request.header], source))
    return Frame("header", _sized(made + request.body), request.message_version.name)


def _size(request: _Request, source: random.Random) -> Frame:
    content = request.header + request.body
    size = len(content)
    wrong = (0, 1, size - 1, size + 1, -1, -size, 2**31 - 1, -(2**31), 104_857_601)
    return Frame("size", _SIZE.pack(source.choice(wrong)) + content, request.message_version.name)


def _cut(request: _Request, source: random.Random) -> Frame:
    whole = _sized(request.header + request.body)
    return Frame("cut", whole[: source.randrange(len(whole))], request.message_version.name)


def _unknown(request: _Request, source: random.Random) -> Frame:
    key = source.choice((request.api_key, -1, 999, 32767))
    version = (
        source.choice((-1, 99, 32767))
        if key == request.api_key
        else request.message_version.version
    )
    head = struct.pack(">hh", key, version) + request.header[4:]
    return Frame("unknown", _sized(head + request.body), request.message_version.name)


def _several(request: _Request, source: random.Random) -> Frame:
    first = _valid(request, source).data
    broken = _body(request, source).data
    return Frame("several", first + broken + first, request.message_version.name)


def _noise(request: _Request, source: random.Random) -> Frame:
    return Frame("noise", source.choice((*_NOISE, source.randbytes(source.randint(1, 64)))))


_MAKERS: Final[dict[str, Callable[[_Request, random.Random], Frame]]] = {
    "sound": _valid,
    "body": _body,
    "header": _header,
    "size": _size,
    "cut": _cut,
    "unknown": _unknown,
    "several": _several,
    "noise": _noise,
}
