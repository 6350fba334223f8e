"""Writes and reads recordings of the traffic of `kproto proxy`: lines of JSON.

The first line is `{"kproto_recording": 1}`. Each other line is an entry with `us` (microseconds
since 1970), `c` (the number of the connection), and one of

- `open`: the client's address, with `to`, the address of the broker;
- `client` or `broker`: bytes that this side sent, in base64;
- `close`: the reason why the connection ended.

The bytes of one side of one connection, in the order of their lines, are the stream that this side
sent, up to the limit of the file. By default the proxy replaces each byte of a secret by an
asterisk. A crash can truncate only the last line, and a reader returns the entries before it.
"""

from __future__ import annotations

import base64
import binascii
import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ..wire.checks import check_whole_number
from ..wire.errors import DecodeError
from .conversations import Side

__all__ = [
    "DEFAULT_MAX_RECORDED_BYTES",
    "Recorder",
    "RecordingEntry",
    "is_recording",
    "read_recording",
]

#: Default of the maximum size of a recording, in bytes.
DEFAULT_MAX_RECORDED_BYTES: Final = 1_073_741_824

#: Maximum number of bytes of a side in one line, because a line is read into memory at once.
_MAX_LINE_DATA: Final = 786_432

#: Maximum length of a line that is read, in bytes; the lines that `Recorder` writes are shorter.
_MAX_LINE: Final = 4 * _MAX_LINE_DATA

#: The keys of an entry; it has at least one of `_CONTENTS`.
_CONTENTS: Final = frozenset({"open", "close", *(side.value for side in Side)})
_KEYS: Final = frozenset({"us", "c", "to", *_CONTENTS})

_HEAD: Final = b'{"kproto_recording": 1}\n'


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """An entry of a recording: bytes that a side sent, or the start or end of a connection.

    `client` and `target`, the addresses, are set at the start of a connection. `closed`, the reason
    of the end, is set at the end of a connection.
    """

    time_us: int
    connection: int
    side: Side | None = None
    data: bytes = b""
    client: str | None = None
    target: str | None = None
    closed: str | None = None


class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...


class Recorder:
    """Writes entries to `file`, up to `max_bytes` bytes.

    If an entry would exceed `max_bytes`, `is_full` becomes True, and this entry and all later
    entries are dropped. Raises OSError if a write fails or writes only a part of the bytes.
    """

    def __init__(self, file: _Writable, max_bytes: int = DEFAULT_MAX_RECORDED_BYTES) -> None:
        check_whole_number("max_bytes", max_bytes, len(_HEAD))
        self._file = file
        self._max_bytes = max_bytes
        self.is_full = False
        self.written = len(_HEAD)
        file.write(_HEAD)
        file.flush()

    def write(self, entry: RecordingEntry) -> bool:
        """Writes an entry, in several lines if it is large; returns False if it was dropped."""
        if self.is_full:
            return False
        lines = b"".join(_lines(entry))
        if self.written + len(lines) > self._max_bytes:
            self.is_full = True
            return False
        if self._file.write(lines) != len(lines):
            self.is_full = True  # a reader could not parse lines after an incomplete line
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file.flush()
        self.written += len(lines)
        return True


def _lines(entry: RecordingEntry) -> Iterator[bytes]:
    line: dict[str, Any] = {"us": entry.time_us, "c": entry.connection}
    if entry.client is not None:
        yield _line(line | {"open": entry.client, "to": entry.target})
    if entry.side is not None:
        # json.dumps would be too slow for the traffic of a proxy; base64 needs no escapes.
        head = b'{"us": %d, "c": %d, "%b": "' % (
            entry.time_us,
            entry.connection,
            entry.side.value.encode(),
        )
        for start in range(0, len(entry.data), _MAX_LINE_DATA):
            piece = entry.data[start : start + _MAX_LINE_DATA]
            yield b"".join((head, binascii.b2a_base64(piece, newline=False), b'"}\n'))
    if entry.closed is not None:
        yield _line(line | {"close": entry.closed})


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class _LineReader(Protocol):
    def readline(self, limit: int = ..., /) -> bytes: ...


def is_recording(start: bytes) -> bool:
    """Returns True if `start` is the beginning of a recording."""
    return start.lstrip().startswith(b'{"kproto_recording"')


def read_recording(
    file: _LineReader, on_truncation: Callable[[int], None] | None = None
) -> Iterator[RecordingEntry]:
    """Yields the entries of a recording; ignores a truncated last line.

    Calls `on_truncation` with the number of such a line. Raises DecodeError, which names the line,
    if the file is not a recording or a line is invalid.
    """
    head = _object(file.readline(_MAX_LINE))
    if head is None or head.get("kproto_recording") != 1:
        raise DecodeError(
            "line 1 is not the first line of a recording that `kproto proxy --record` wrote"
        )
    number = 1
    while line := file.readline(_MAX_LINE):
        number += 1
        if not line.endswith(b"\n") and len(line) < _MAX_LINE:
            if on_truncation is not None:
                on_truncation(number)
            return
        found = _object(line)
        if found is None:
            raise _wrong_line(number, "it is no JSON object")
        yield _entry(found, number)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _entry(found: dict[str, Any], number: int) -> RecordingEntry:
    time_us, connection = found.get("us"), found.get("c")
    if type(time_us) is not int or type(connection) is not int:
        raise _wrong_line(number, "`us` and `c` must be whole numbers")
    unknown = found.keys() - _KEYS
    if unknown or not found.keys() & _CONTENTS:
        raise _wrong_line(
            number,
            f"it has the unknown key {min(unknown)!r}" if unknown else "it has no content",
        )
    texts = {key: found[key] for key in ("open", "to", "close") if key in found}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise _wrong_line(number, f"`{key}` must be text")
    for side in Side:
        if side.value in found:
            return RecordingEntry(time_us, connection, side, _data(found[side.value], number))
    return RecordingEntry(
        time_us,
        connection,
        client=texts.get("open"),
        target=texts.get("to"),
        closed=texts.get("close"),
    )


def _data(text: object, number: int) -> bytes:
    if not isinstance(text, str):
        raise _wrong_line(number, "bytes must be text in base64")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise _wrong_line(number, f"bytes must be text in base64: {error}") from None


def _wrong_line(number: int, reason: str) -> DecodeError:
    return DecodeError(f"line {number} of the recording: {reason}; the lines before it can be read")
