"""Shrinks the frames that cause a fault of a broker, to fewer and shorter frames.

Removes frames, then requests from a frame with several requests, then values from a request, then
bytes. A correct size field stays correct. A function of the caller sends the frames, and returns
True if they cause the fault.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from ..messages.base import Message
from ..protocol.headers import encode_request_header, request_class
from ..wire.errors import DecodeError, EncodeError
from .case import MessageVersion
from .frame_generation import CLIENT_ID, Frame
from .shrinking import fewer_bytes, fewer_values, minimize

__all__ = ["smallest_frames"]

#: Frames that are sent in this order, each on a new connection.
Frames = tuple[Frame, ...]

_SIZE: Final = struct.Struct(">i")


def smallest_frames(frames: Frames, reproduces: Callable[[Frames], bool]) -> Frames:
    """Returns the smallest frames found that `reproduces` accepts; this may be `frames` itself."""
    for steps in (_fewer_frames, _shorter(_fewer_requests), _shorter(_values), _shorter(_bytes)):
        frames = minimize(frames, reproduces, steps, _rank)
    return frames


def _rank(frames: Frames) -> tuple[int, int, bytes]:
    data = b"".join(frame.data for frame in frames)
    return len(frames), len(data), data


def _fewer_frames(frames: Frames) -> Iterator[Frames]:
    """Yields each single frame, the last first; then each half; then all frames except one."""
    if len(frames) == 1:
        return
    for frame in reversed(frames):
        yield (frame,)
    half = len(frames) // 2
    yield frames[half:]
    yield frames[:half]
    for index in range(len(frames)):
        yield frames[:index] + frames[index + 1 :]


def _shorter(steps: Callable[[Frame], Iterator[Frame]]) -> Callable[[Frames], Iterator[Frames]]:
    """Returns a function that takes frames, and yields copies in which one frame is shorter.

    `steps` yields the shorter frames by which a frame may be replaced.
    """

    def of_each(frames: Frames) -> Iterator[Frames]:
        for index, frame in enumerate(frames):
            for shorter in steps(frame):
                yield (*frames[:index], shorter, *frames[index + 1 :])

    return of_each


def _fewer_requests(frame: Frame) -> Iterator[Frame]:
    """Yields copies of a frame without one of its requests; nothing for a single request."""
    parts = []
    at = 0
    while at + _SIZE.size <= len(frame.data):
        end = at + _SIZE.size + max(0, _SIZE.unpack_from(frame.data, at)[0])
        parts.append(frame.data[at:end])
        at = end
    if len(parts) > 1:
        for index in range(len(parts)):
            yield replace(frame, data=b"".join(parts[:index] + parts[index + 1 :]))


def _values(frame: Frame) -> Iterator[Frame]:
    """Yields smaller copies of a frame.

    The first copy has no client id. Each further copy has a smaller body, in which one value of the
    request is removed or changed. Yields nothing if `_parts` finds no request.
    """
    cls, header, body = _parts(frame)
    if cls is None or frame.version is None or frame.correlation_id is None:
        return
    unnamed = encode_request_header(cls, frame.version, frame.correlation_id, None)
    if len(unnamed) < len(header):
        yield replace(frame, data=_sized(unnamed + body))
    for smaller in fewer_values(MessageVersion(cls._definition().name, frame.version), body):
        yield replace(frame, data=_sized(header + smaller))


def _bytes(frame: Frame) -> Iterator[Frame]:
    """Yields copies of a frame with changed content, most of them shorter.

    `fewer_bytes` makes the changes: it first removes some consecutive bytes, then sets one byte to
    0. If the frame has a request that `_parts` finds, only the body of the request is changed. If
    the frame also has the kind "sound", each changed body is a valid message. If `_parts` finds no
    request, and the frame has a correlation id, yields nothing.
    """
    cls, header, body = _parts(frame)
    if cls is not None:
        for shorter in fewer_bytes(body):
            if frame.kind != "sound" or _is_sound(cls, frame.version, shorter):
                yield replace(frame, data=_sized(header + shorter))
    elif frame.correlation_id is None:
        content = frame.data[_SIZE.size :]
        if frame.data == _sized(content):
            for shorter in fewer_bytes(content):
                yield replace(frame, data=_sized(shorter))
        else:
            for shorter in fewer_bytes(frame.data):
                yield replace(frame, data=shorter)


def _parts(frame: Frame) -> tuple[type[Message] | None, bytes, bytes]:
    """Returns the class, header and body of the request in a frame.

    Returns (None, b"", b"") unless the frame is one whole request of a known API and version.
    """
    if frame.api_key is None or frame.version is None or frame.correlation_id is None:
        return None, b"", b""
    cls = request_class(frame.api_key)
    content = frame.data[_SIZE.size :]
    if cls is None or frame.version not in cls.VALID_VERSIONS or frame.data != _sized(content):
        return None, b"", b""
    for client_id in (None, CLIENT_ID):
        header = encode_request_header(cls, frame.version, frame.correlation_id, client_id)
        if content.startswith(header):
            return cls, header, content[len(header) :]
    return None, b"", b""


def _is_sound(cls: type[Message], version: int | None, body: bytes) -> bool:
    """Returns True if `body` is a valid message that kproto encodes to the same bytes."""
    assert version is not None
    try:
        return cls.decode(body, version).encode(version) == body
    except (DecodeError, EncodeError):
        return False


def _sized(content: bytes) -> bytes:
    return _SIZE.pack(len(content)) + content
