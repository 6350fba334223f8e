"""Shrinks the frames that show a fault of a broker to as few and as short ones as possible.

Removes frames, then requests from a frame with several, then values from a request, then bytes; a
size that was right is corrected. Knows no socket: a function of the caller tells whether a try
shows the fault, and ends the search by returning False.
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

#: Frames that are sent in this order, each on a connection of its own.
Frames = tuple[Frame, ...]

_SIZE: Final = struct.Struct(">i")


def smallest_frames(frames: Frames, shows: Callable[[Frames], bool]) -> Frames:
    """Returns the smallest frames for which `shows` is true; `frames` itself if none are
    smaller.
    """
    for steps in (_fewer_frames, _shorter(_fewer_requests), _shorter(_values), _shorter(_bytes)):
        frames = minimize(frames, shows, steps, _rank)
    return frames


def _rank(frames: Frames) -> tuple[int, int, bytes]:
    data = b"".join(frame.data for frame in frames)
    return len(frames), len(data), data


def _fewer_frames(frames: Frames) -> Iterator[Frames]:
    """Yields single frames, the last first; then half of them; then all except one."""
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
    """Applies the steps for one frame to each of several frames."""

    def of_each(frames: Frames) -> Iterator[Frames]:
        for index, frame in enumerate(frames):
            for shorter in steps(frame):
                yield (*frames[:index], shorter, *frames[index + 1 :])

    return of_each


def _fewer_requests(frame: Frame) -> Iterator[Frame]:
    """Yields a frame of several requests, with one less."""
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
    """Yields a request with one value less or simpler, or without the client's name."""
    cls, header, body = _parts(frame)
    if cls is None or frame.version is None or frame.correlation_id is None:
        return
    unnamed = encode_request_header(cls, frame.version, frame.correlation_id, None)
    if len(unnamed) < len(header):
        yield replace(frame, data=_sized(unnamed + body))
    for smaller in fewer_values(MessageVersion(cls._definition().name, frame.version), body):
        yield replace(frame, data=_sized(header + smaller))


def _bytes(frame: Frame) -> Iterator[Frame]:
    """Yields a frame without ever smaller parts, then with some of its bytes zero.

    The header of a request whose response is awaited stays, and a valid header stays valid.
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
    """Returns class, header and body of a request whose response is awaited; else no class."""
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
    """Returns whether the bytes are exactly a message as kproto writes it."""
    assert version is not None
    try:
        return cls.decode(body, version).encode(version) == body
    except (DecodeError, EncodeError):
        return False


def _sized(content: bytes) -> bytes:
    return _SIZE.pack(len(content)) + content
