"""Recognizes requests in the bytes of a connection whose start was not captured."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Final

from ..protocol.connection import read_request
from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses
from ..wire.errors import DecodeError

__all__ = ["RequestDetector", "detector_for"]

#: Maximum number of bytes after the body of a request. Some clients send a few bytes there; a frame
#: with more bytes after the body does not count as a request.
_MOST_TRAILING: Final = 8

_KEY_VERSION_ID: Final = struct.Struct(">hhi")

#: Api key, version, correlation id, and the length of the client id.
_REQUEST_HEAD: Final = struct.Struct(">hhih")


class RequestDetector:
    """Decides whether bytes are a request of `classes`.

    `start` matches the first bytes of a request: a size under 128 MiB, an api key and a version. It
    matches some bytes that are no request, because it only limits the search; `may_be_request`
    and `is_request` decide.
    """

    def __init__(self, classes: MessageClasses) -> None:
        self._classes = classes
        self.start = _start_pattern(classes)

    def may_be_request(self, head: bytes) -> bool:
        """Returns True if api key, version and client id in `head` can be those of a request.

        `head` is the start of a frame after its size field. If it is too short, returns True.
        """
        if len(head) < _REQUEST_HEAD.size:
            return True  # too few bytes to decide
        api_key, version, _, length = _REQUEST_HEAD.unpack_from(head)
        cls = self._classes.request(api_key)
        if cls is None or version not in cls.VALID_VERSIONS:
            return False
        client_id = head[_REQUEST_HEAD.size :][: max(0, length)]
        return length >= -1 and (not client_id or client_id.isascii()) and b"\0" not in client_id

    def is_request(self, content: bytes) -> bool:
        """Returns True if a frame (without its size field) reads as a request.

        The client id must be printable, and at most 8 bytes may follow the body.
        """
        if len(content) < _KEY_VERSION_ID.size:
            return False
        api_key, version, _ = _KEY_VERSION_ID.unpack_from(content)
        cls = self._classes.request(api_key)
        if cls is None or version not in cls.VALID_VERSIONS:
            return False
        try:
            received = read_request(content, self._classes)
        except DecodeError:
            return False
        is_printable = (received.client_id or "").isprintable()
        return is_printable and len(received.trailing) <= _MOST_TRAILING


def _start_pattern(classes: MessageClasses) -> re.Pattern[bytes]:
    """Returns the pattern of `RequestDetector.start`.

    Kafka's api keys are under 256 and its versions under 32. For other classes, the pattern allows
    the first byte of each of their api keys, and of versions up to their highest.
    """
    keys, highest = {0}, 31
    for api_key in classes.api_keys - KAFKA_MESSAGES.api_keys:
        keys.add((api_key & 0xFFFF) >> 8)
    for api_key in classes.api_keys:
        cls = classes.request(api_key)
        if cls is not KAFKA_MESSAGES.request(api_key) and cls is not None:
            highest = max(highest, *cls.VALID_VERSIONS)
    first = b"".join(b"\\x%02x" % key for key in sorted(keys))
    version = b"\\x00[\\x00-\\x1f]" if highest < 32 else b"[\\x00-\\x%02x]." % (highest >> 8)
    return re.compile(b"[\\x00-\\x07].{3}[%b].%b" % (first, version), re.DOTALL)


@lru_cache(maxsize=8)
def detector_for(classes: MessageClasses) -> RequestDetector:
    """Returns the detector for `classes`, cached because each connection needs it."""
    return RequestDetector(classes)
