"""Splits the input of `kproto produce` into records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..client import ProducerRecord
from ..wire.errors import EncodeError

__all__ = ["MAX_LINE_BYTES", "LineSplitter", "keyed", "keyed_records"]

#: Maximum length of a line in bytes. Kafka's largest records have a few MB; a longer line is most
#: likely input without the delimiter.
MAX_LINE_BYTES: Final = 256 << 20


class LineSplitter:
    """Splits chunks of input at a delimiter. The last line of the input needs no delimiter."""

    def __init__(self, delimiter: bytes = b"\n") -> None:
        self._delimiter = delimiter
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that `chunk` completes, without their delimiter.

        Raises EncodeError if a line has more than MAX_LINE_BYTES.
        """
        joined = chunk
        if self._rest and (self._delimiter in chunk or len(self._delimiter) > 1):
            joined = b"".join([*self._rest, chunk])  # a longer delimiter may be cut in two
            self._rest, self._size = [], 0
        lines = joined.split(self._delimiter)
        last = lines.pop()
        self._rest.append(last)
        self._size += len(last)
        if self._size > MAX_LINE_BYTES:
            raise EncodeError(
                f"a line of the input has more than {MAX_LINE_BYTES:,} bytes; --delimiter sets "
                "what ends a line"
            )
        return lines

    def finish(self) -> list[bytes]:
        """Returns the last line, if the input does not end with the delimiter."""
        last = b"".join(self._rest)
        self._rest, self._size = [], 0
        return [last] if last else []


def keyed(line: bytes, separator: bytes) -> ProducerRecord:
    """Returns the record of a line whose key precedes the first `separator`.

    A line without the separator is a record without a key.
    """
    return keyed_records([line], separator)[0]


def keyed_records(lines: Sequence[bytes], separator: bytes) -> list[ProducerRecord]:
    """Returns the records of lines, as `keyed` does for each."""
    # tuple.__new__ takes half the time of ProducerRecord(...), which has named arguments.
    new, cls = tuple.__new__, ProducerRecord
    return [
        new(cls, (value if found else key, key if found else None, (), None, None))
        for key, found, value in [line.partition(separator) for line in lines]
    ]
