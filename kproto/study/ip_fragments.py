"""Reassembles fragmented IP packets: fragments as captured in, whole payloads out.

Fragments arrive in any order, and more than once if a packet was captured on two interfaces. A
fragment that overlaps or contradicts the stored ones belongs to another packet with the same id.
The stored fragments are then dropped, as Linux and RFC 8200 drop packets with overlapping
fragments. Knows no packet formats.
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

#: Bytes of fragments that are held; with more, the oldest packet is dropped. The default of Linux
#: (ipfrag_high_thresh).
MAX_WAITING_BYTES: Final = 4_194_304

#: Fragments that are held, because small ones cost more than their bytes.
MAX_WAITING_PIECES: Final = 10_000

#: How long the fragments of a packet may be apart, in microseconds: a minute by RFC 8200; Linux
#: waits half of it.
MAX_AGE_US: Final = 60_000_000

#: Largest payload of an IP packet, by the 16 bits of its length.
MAX_PAYLOAD_BYTES: Final = 65_535

#: The unit of fragment offsets, in bytes: sizes of all fragments except the last are multiples.
_UNIT: Final = 8


#: Source, target, id and protocol of a packet.
PacketId: TypeAlias = tuple[bytes, bytes, int, int]


class Fragment(NamedTuple):
    """Describes a fragment: the packet that it is `packet_id`, its offset there, and whether `more`
    follow.
    """

    time_us: int
    packet_id: PacketId
    offset: int
    more: bool
    data: bytes


@dataclass(slots=True)
class _Packet:
    """Holds the fragments of a packet; they stay after it is whole, to recognise duplicates."""

    first_us: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)  # those of `pieces`, in order
    size: int = 0
    total: int | None = None
    is_whole: bool = False


@dataclass(slots=True)
class FragmentReassembler:
    """Holds fragments until all others of their packet have arrived."""

    max_waiting_bytes: int = MAX_WAITING_BYTES
    max_waiting_pieces: int = MAX_WAITING_PIECES
    #: Count of fragments that were dropped or are invalid.
    dropped: int = 0
    _packets: dict[PacketId, _Packet] = field(init=False, default_factory=dict)
    _bytes: int = field(init=False, default=0)
    _pieces: int = field(init=False, default=0)

    def add(self, fragment: Fragment) -> bytes | None:
        """Takes a fragment; returns the whole payload if it was the last missing one."""
        end = fragment.offset + len(fragment.data)
        is_uneven = fragment.more and end % _UNIT != 0
        if not fragment.data or is_uneven or end > MAX_PAYLOAD_BYTES:
            self.dropped += 1
            return None
        self._drop_expired(fragment.time_us)
        packet = self._packets.get(fragment.packet_id)
        if packet is not None:
            if packet.pieces.get(fragment.offset) == fragment.data:
                return None  # seen before
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
    """Returns whether a fragment cannot be of the same packet: it overlaps, or the ends differ."""
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
