"""Reassembles TCP streams from captured segments.

`TcpStream` returns the bytes of a direction in order, without duplicates from retransmissions and
overlaps. Bytes that were not captured become a `Gap` with their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

__all__ = [
    "MAX_WAITING_BYTES",
    "MAX_WAITING_SEGMENTS",
    "Gap",
    "StreamData",
    "TcpSegment",
    "TcpStream",
]

#: Maximum number of bytes of a direction that wait for missing bytes. If more bytes wait, the
#: missing bytes count as lost. Few connections have a larger TCP window.
MAX_WAITING_BYTES: Final = 16_777_216

#: Maximum number of waiting segments, because small segments take more memory than their bytes.
MAX_WAITING_SEGMENTS: Final = 10_000

#: Missing bytes count as lost after the receiver acknowledged them this many times, because packets
#: of several processors may be captured out of order.
_PATIENCE: Final = 3

_MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31


class TcpSegment(NamedTuple):
    """A TCP segment, with source and target as (host, port).

    `acknowledged` is None without the ACK flag. `time_us` is the capture time in microseconds.
    """

    time_us: int
    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    acknowledged: int | None
    is_syn: bool
    is_fin: bool
    is_reset: bool
    data: bytes


class Gap(NamedTuple):
    """Bytes that were not captured; `size` is their number."""

    size: int


class StreamData(NamedTuple):
    """The next bytes of one direction of a connection, or a gap in them.

    `time_us` is the capture time in microseconds. Bytes that waited for missing bytes get the time
    at which the missing bytes were captured. Bytes after a gap get their own capture time.
    """

    time_us: int
    data: bytes | Gap


@dataclass(slots=True)
class TcpStream:
    """Reassembles the bytes of one direction of a connection.

    A position is an unbounded integer whose lower 32 bits are the sequence number.
    """

    max_waiting_bytes: int = MAX_WAITING_BYTES
    max_waiting_segments: int = MAX_WAITING_SEGMENTS
    #: The position of the next byte to return; None before the first segment.
    next: int | None = None
    _syn_sequence: int | None = None
    #: Position of the first captured bytes if no SYN was captured before them, else None.
    _first: int | None = None
    #: Capture time and bytes of each waiting segment, by its position.
    _waiting: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    #: The positions in `_waiting`, as a heap.
    _positions: list[int] = field(default_factory=list)
    _waiting_bytes: int = 0
    _acknowledged_count: int = 0

    def on_syn(self, sequence: int) -> None:
        """Records a SYN; the stream begins after its sequence number."""
        if self.next is None:
            self.next = (sequence + 1) % _MODULUS
        if self._syn_sequence is None:
            self._syn_sequence = sequence

    def is_new_connection(self, sequence: int) -> bool:
        """Returns True if a SYN with this sequence number opens a new connection.

        Returns False if the capture has the SYN of this connection twice, or has it after the first
        bytes of the connection.
        """
        if self.next is None:
            return False
        if self._syn_sequence is None:
            return (sequence + 1) % _MODULUS != self._first
        return sequence != self._syn_sequence

    @property
    def has_start(self) -> bool:
        """Returns True if the SYN was captured; the stream then begins with its first byte."""
        return self._syn_sequence is not None

    def add(self, sequence: int, data: bytes, time_us: int) -> list[StreamData]:
        """Adds the bytes of a segment, captured at `time_us`.

        Returns the bytes that can now be read in order. If too many bytes wait for a missing
        segment, also returns a gap in place of this segment.
        """
        if not data:
            return []
        if self.next is None:
            self.next = self._first = sequence % _MODULUS
        position = self._position(sequence)
        if position > self.next:
            _, waiting = self._waiting.get(position, (0, b""))
            if not waiting:
                heappush(self._positions, position)
            if len(data) > len(waiting):
                self._waiting[position] = time_us, waiting + data[len(waiting) :]
                self._waiting_bytes += len(data) - len(waiting)
            if (
                self._waiting_bytes > self.max_waiting_bytes
                or len(self._waiting) > self.max_waiting_segments
            ):
                return self._skip()
            return []
        new_data = data[self.next - position :]
        if not new_data:
            return []
        # If the new bytes overlap waiting bytes, the waiting bytes are returned.
        return self._merge(new_data, time_us)

    def acknowledge(self, acknowledged: int) -> list[StreamData]:
        """Records that the receiver acknowledged the bytes before sequence number `acknowledged`.

        Missing bytes count as lost after several such calls. Then returns a gap for the lost bytes
        and the bytes after the gap; otherwise returns an empty list.
        """
        if self.next is None or not self._waiting:
            return []
        if self._position(acknowledged) <= self._positions[0]:
            return []
        self._acknowledged_count += 1
        return self._skip() if self._acknowledged_count >= _PATIENCE else []

    def end(self) -> list[StreamData]:
        """Returns all buffered bytes, with a gap in place of each missing part."""
        out: list[StreamData] = []
        while self._waiting:
            out += self._skip()
        return out

    def _position(self, sequence: int) -> int:
        """Returns the position of the byte with this sequence number.

        Sequence numbers repeat after 2**32 bytes: of the possible positions, the position nearest
        to `next` is returned.
        """
        assert self.next is not None
        distance = (sequence - self.next) % _MODULUS
        return self.next + distance - (_MODULUS if distance >= _HALF else 0)

    def _merge(self, data: bytes, time_us: int) -> list[StreamData]:
        """Returns `data` together with the buffered bytes that follow it in the stream."""
        assert self.next is not None
        out: list[StreamData] = []
        begin = start = self.next
        stop = begin + len(data)
        while self._positions and self._positions[0] <= max(start, stop):
            first = heappop(self._positions)
            captured_us, waiting = self._waiting.pop(first)
            self._waiting_bytes -= len(waiting)
            if first > start:
                out.append(StreamData(time_us, data[start - begin : first - begin]))
                start = first
            if first + len(waiting) > start:
                time_us = max(time_us, captured_us)
                out.append(StreamData(time_us, waiting[start - first :]))
                start = first + len(waiting)
        if start < stop:
            out.append(StreamData(time_us, data[start - begin :]))
            start = stop
        self.next = start
        self._acknowledged_count = 0
        return out

    def _skip(self) -> list[StreamData]:
        """Returns a gap for the first missing bytes, and the buffered bytes that follow it."""
        assert self.next is not None
        first = self._positions[0]
        gap = Gap(first - self.next)
        self.next = first
        time_us, _ = self._waiting[first]
        return [StreamData(time_us, gap), *self._merge(b"", time_us)]
