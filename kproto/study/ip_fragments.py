"""Reassembles fragmented IP packets of a capture.

Fragments may arrive in any order, and twice if a packet was captured on two interfaces. A fragment
that overlaps a stored fragment, or contradicts the end of the packet, is taken for the start of a
new packet with the same id. The stored fragments are then dropped, as Linux does (RFC 8200).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "MAX_WAITING_BYTES",
    "MAX_WAITING_PIECES",
    "Fragment",
    "FragmentReassembler",
]

#: Maximum number of stored bytes of fragments, as in Linux (ipfrag_high_thresh). If there are more,
#: the oldest packet is dropped.
MAX_WAITING_BYTES: Final = 4_194_304

#: Maximum number of stored fragments, because small fragments take more memory than their bytes.
MAX_WAITING_PIECES: Final = 10_000

#: How long fragments of an incomplete packet are stored, in microseconds. RFC 8200 says 60 seconds;
#: Linux waits 30.
MAX_AGE_US: Final = 60_000_000

#: Largest payload of an IP packet, whose length field has 16 bits.
MAX_PAYLOAD_BYTES: Final = 65_535

#: The unit of fragment offsets, in bytes. The size of each fragment except the last is a
#: multiple of it.
_UNIT: Final = 8


#: Source, target, id and protocol of a packet.
PacketId: TypeAlias = tuple[bytes, bytes, int, int]


class Fragment(NamedTuple):
    """A fragment of the packet `packet_id`.

    `offset` is its position in the payload of the packet in bytes. `more` is False for the last
    fragment. `time_us` is the capture time in microseconds.
    """

    time_us: int
    packet_id: PacketId
    offset: int
    more: bool
    data: bytes


@dataclass(slots=True)
class _Packet:
    """The fragments of a packet, kept after the packet is complete, to detect duplicates.

    `size` is the number of stored bytes. `total` is the size of the payload, None if unknown.
    """

    first_us: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)  # the keys of `pieces`, sorted
    size: int = 0
    total: int | None = None
    is_whole: bool = False


@dataclass(slots=True)
class FragmentReassembler:
    """Stores fragments of packets.

    Returns the payload of a packet when its last fragment arrives.
    """

    max_waiting_bytes: int = MAX_WAITING_BYTES
    max_waiting_pieces: int = MAX_WAITING_PIECES
    #: The number of fragments that were invalid, or whose packet was dropped.
    dropped: int = 0
    _packets: dict[PacketId, _Packet] = field(init=False, default_factory=dict)
    _bytes: int = field(init=False, default=0)
    _pieces: int = field(init=False, default=0)

    def add(self, fragment: Fragment) -> bytes | None:
        """Adds a fragment; returns the payload if the packet is now complete, else None."""
        end = fragment.offset + len(fragment.data)
        is_uneven = fragment.more and end % _UNIT != 0
        if not fragment.data or is_uneven or end > MAX_PAYLOAD_BYTES:
            self.dropped += 1
            return None
        self._drop_expired(fragment.time_us)
        packet = self._packets.get(fragment.packet_id)
        if packet is not None:
            if packet.pieces.get(fragment.offset) == fragment.data:
                return None  # a duplicate
            if _contradicts(packet, fragment, end):
                self._drop(fragment.packet_id)
                packet = None
        if packet is None:
            packet = self._packets[fragment.packet_id] = _Packet(fragment.time_us)
        packet.pieces[fragment.offset] = fragment.data
        insort(packet.offsets, fragment.offset)
        packet.size += len(fragment.data)
        self._bytes += len(fragment.data)
        self._pieces += 1
        if not fragment.more:
            packet.total = end
        payload = None
        if packet.size == packet.total:
            packet.is_whole = True
            payload = b"".join(packet.pieces[offset] for offset in packet.offsets)
        while self._bytes > self.max_waiting_bytes or self._pieces > self.max_waiting_pieces:
            self._drop(next(iter(self._packets)))
        return payload

    def end(self) -> int:
        """Drops all stored fragments; returns the total number of dropped fragments."""
        for packet_id in list(self._packets):
            self._drop(packet_id)
        return self.dropped

    def _drop_expired(self, now_us: int) -> None:
        while self._packets:
            packet_id = next(iter(self._packets))
            if now_us - self._packets[packet_id].first_us <= MAX_AGE_US:
                return
            self._drop(packet_id)

    def _drop(self, packet_id: PacketId) -> None:
        packet = self._packets.pop(packet_id)
        self._bytes -= packet.size
        self._pieces -= len(packet.pieces)
        if not packet.is_whole:
            self.dropped += len(packet.pieces)


def _contradicts(packet: _Packet, fragment: Fragment, end: int) -> bool:
    """Returns True if a fragment cannot belong to the packet.

    This is so if the packet is complete, if the fragment overlaps another fragment, or if the
    fragment goes beyond the known end of the payload or claims another end.
    """
    if packet.is_whole:
        return True
    at = bisect_left(packet.offsets, fragment.offset)
    if at < len(packet.offsets) and packet.offsets[at] < end:
        return True
    if at:
        before = packet.offsets[at - 1]
        if before + len(packet.pieces[before]) > fragment.offset:
            return True
    last = packet.offsets[-1]
    reached = last + len(packet.pieces[last])
    if packet.total is not None:
        return not fragment.more or end > packet.total
    return not fragment.more and reached > end
