"""Reads the TCP segments of pcap and pcapng files, as tcpdump and Wireshark write them.

This module reads the file format. The package dpkt (the extra `capture`) reads the packets:
Ethernet with VLAN tags, Linux cooked (v1 and v2, `tcpdump -i any`), loopback and bare IP; IPv4 and
IPv6. Packets without TCP, and packets that cannot be read, are skipped and counted. Fragmented IP
packets are reassembled.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from ..wire.errors import ConfigurationError, DecodeError
from .ip_fragments import Fragment, FragmentReassembler
from .tcp_streams import TcpSegment

__all__ = ["SkippedPackets", "is_capture", "read_segments"]

#: Largest block or packet that is read, in bytes; tcpdump truncates packets to 262,144.
MAX_BLOCK_BYTES: Final = 16_777_216

#: The byte order and the number of time units in a second, by the first bytes of a pcap file.
_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}

_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_TCP: Final = 6
_FRAGMENT_HEADER: Final = 44  # an extension header of IPv6

_UNITS_OPTION: Final = 9
_OFFSET_OPTION: Final = 14


class _Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


@dataclass(slots=True)
class SkippedPackets:
    """Counts the packets of a capture that were skipped, and the packets that are cut off.

    - `other_protocol`: skipped packets without TCP. `broken`: skipped packets that cannot be read.
    - `fragments`: skipped IP fragments that are invalid, or whose IP packet stayed incomplete.
    - `truncated`: packets of which the capture has only the first bytes. They are not skipped.
    - `truncation`: which packet or block of the file is cut off or broken, and why; None if there
      is no such fault.
    """

    other_protocol: int = 0
    broken: int = 0
    fragments: int = 0
    truncated: int = 0
    truncation: str | None = None


class _Packet(NamedTuple):
    """A captured packet and its link type."""

    time_us: int
    link: int
    data: bytes


class _Interface(NamedTuple):
    """An interface of a pcapng file.

    `units` is the number of time units in a second. `offset_s` is added to the time of each packet.
    """

    link: int
    units: int
    offset_s: int


def is_capture(start: bytes) -> bool:
    """Returns True if `start` is the beginning of a pcap or pcapng file."""
    return start[:4] in _PCAP or start[:4] == _SECTION


def read_segments(file: _Readable, skipped: SkippedPackets | None = None) -> Iterator[TcpSegment]:
    """Yields the TCP segments of a pcap or pcapng file; `skipped` counts the other packets.

    Raises DecodeError for a file of another format or with an unknown link type, and
    ConfigurationError if dpkt is not installed.
    """
    counted = SkippedPackets() if skipped is None else skipped
    pieces = FragmentReassembler()
    to_segment = _segment_reader(counted, pieces)
    try:
        for packet in _packets(file, counted):
            segment = to_segment(packet)
            if segment is not None:
                yield segment
    finally:
        counted.fragments += pieces.end()


def _segment_reader(
    counted: SkippedPackets, pieces: FragmentReassembler
) -> Callable[[_Packet], TcpSegment | None]:
    try:
        import dpkt as packets
    except ImportError:
        raise ConfigurationError(
            "captures of tcpdump are read by dpkt, which is not installed: "
            "pip install 'kproto[capture]'"
        ) from None
    dpkt: Any = packets  # dpkt sets attributes that mypy does not see
    # Link types: bare IP is 101 on Linux, 12 and 14 on BSD; 228 and 229 are IPv4 and IPv6.
    links: dict[int, Any] = {
        0: dpkt.loopback.Loopback,
        108: dpkt.loopback.Loopback,
        1: dpkt.ethernet.Ethernet,
        113: dpkt.sll.SLL,
        276: dpkt.sll2.SLL2,
        228: dpkt.ip.IP,
        229: dpkt.ip6.IP6,
    }
    bare = (12, 14, 101)
    # Errors that dpkt raises on broken packets.
    faults = (dpkt.Error, ValueError, IndexError, KeyError, struct.error, TypeError, AttributeError)

    def to_segment(packet: _Packet) -> TcpSegment | None:
        link = links.get(packet.link)
        if packet.link in bare and packet.data:
            link = dpkt.ip6.IP6 if packet.data[0] >> 4 == 6 else dpkt.ip.IP
        if link is None:
            raise DecodeError(
                f"packets of link type {packet.link} cannot be read; capture on Ethernet, "
                "loopback, or with tcpdump -i any"
            )
        try:
            layer = link(packet.data)
            while not isinstance(layer, (dpkt.ip.IP, dpkt.ip6.IP6)):
                if not isinstance(layer, dpkt.Packet):
                    counted.other_protocol += 1
                    return None
                layer = layer.data
            tcp = layer.data
            if (fragment := _fragment(packet.time_us, layer)) is not None:
                if fragment.packet_id[-1] != _TCP:
                    counted.other_protocol += 1
                    return None
                payload = pieces.add(fragment)
                if payload is None:
                    return None
                tcp = dpkt.tcp.TCP(payload)
            if not isinstance(tcp, dpkt.tcp.TCP):
                counted.other_protocol += 1
                return None
            return TcpSegment(
                packet.time_us,
                (_host(layer.src), tcp.sport),
                (_host(layer.dst), tcp.dport),
                tcp.seq,
                tcp.ack if tcp.flags & dpkt.tcp.TH_ACK else None,
                bool(tcp.flags & dpkt.tcp.TH_SYN),
                bool(tcp.flags & dpkt.tcp.TH_FIN),
                bool(tcp.flags & dpkt.tcp.TH_RST),
                bytes(tcp.data),
            )
        except faults:
            counted.broken += 1
            return None

    return to_segment


def _fragment(time_us: int, layer: Any) -> Fragment | None:
    """Returns the fragment in an IP packet; None if the packet is not fragmented.

    The data is empty, and so invalid, if the fragment was truncated, or if its fragment header is
    not the last extension header of IPv6.
    """
    if hasattr(layer, "mf"):
        if not (layer.mf or layer.offset):
            return None
        payload = bytes(layer.data)
        of = (layer.src, layer.dst, layer.id, layer.p)
        is_whole = layer.len == layer.hl * 4 + len(payload)
        more, offset = layer.mf, layer.offset
    else:
        head = layer.extension_hdrs.get(_FRAGMENT_HEADER)
        if head is None:
            return None
        payload = bytes(layer.data)
        of = (layer.src, layer.dst, head.id, head.nxt)
        before = sum(each.length for each in layer.all_extension_headers)
        is_whole = layer.plen == before + len(payload)
        is_whole = is_whole and layer.all_extension_headers[-1] is head
        more, offset = head.m_flag, head.frag_off
    return Fragment(time_us, of, offset * 8, bool(more), payload if is_whole else b"")


def _host(packed: bytes) -> str:
    from ipaddress import ip_address  # imported late, because recordings do not need it

    return str(ip_address(packed))


def _packets(file: _Readable, counted: SkippedPackets) -> Iterator[_Packet]:
    magic = file.read(4)
    if magic in _PCAP:
        yield from _of_pcap(file, *_PCAP[magic], counted)
    elif magic == _SECTION:
        yield from _of_pcapng(file, counted)
    else:
        raise DecodeError("these bytes are no pcap or pcapng file, as tcpdump -w writes it")


def _of_pcap(file: _Readable, order: str, units: int, counted: SkippedPackets) -> Iterator[_Packet]:
    head = file.read(20)
    if len(head) < 20:
        counted.truncation = "the file ends in its header"
        return
    link = struct.unpack(order + "I", head[16:])[0] & 0xFFFF  # the upper bits are not the type
    record = struct.Struct(order + "IIII")
    number = 0
    while start := file.read(record.size):
        number += 1
        if len(start) < record.size:
            counted.truncation = f"packet {number} is cut off"
            return
        seconds, fraction, size, original = record.unpack(start)
        if size > MAX_BLOCK_BYTES:
            counted.truncation = f"packet {number} claims {size} bytes"
            return
        data = file.read(size)
        if len(data) < size:
            counted.truncation = f"packet {number} is cut off"
            return
        counted.truncated += size < original
        yield _Packet(seconds * 1_000_000 + fraction * 1_000_000 // units, link, data)


def _of_pcapng(file: _Readable, counted: SkippedPackets) -> Iterator[_Packet]:
    order, number = "<", 0
    interfaces: list[_Interface] = []
    kind = _SECTION
    while kind:
        number += 1
        size_bytes = file.read(4)
        body = b""
        if kind == _SECTION:
            body = file.read(4)
            if body not in _BYTE_ORDERS:
                counted.truncation = f"block {number} is cut off, or has no valid byte order"
                return
            order, interfaces = _BYTE_ORDERS[body], []
        size = struct.unpack(order + "I", size_bytes)[0] if len(size_bytes) == 4 else 0
        rest = size - 8 - len(body)
        if not 4 <= rest <= MAX_BLOCK_BYTES:
            counted.truncation = f"block {number} claims {size} bytes"
            return
        body += file.read(rest)
        if len(body) < size - 8:
            counted.truncation = f"block {number} is cut off"
            return
        body = body[:-4]  # without the size, which is repeated at the end
        packet = None
        try:
            if kind != _SECTION:
                number_of_kind = struct.unpack(order + "I", kind)[0]
                packet = _of_block(number_of_kind, order, body, interfaces, counted)
        except (struct.error, IndexError, OverflowError):
            counted.broken += 1
        if packet is not None:
            yield packet
        kind = file.read(4)
        if 0 < len(kind) < 4:
            counted.truncation = f"block {number + 1} is cut off"
            return


def _of_block(
    kind: int, order: str, body: bytes, interfaces: list[_Interface], counted: SkippedPackets
) -> _Packet | None:
    """Returns the packet in a block, None for other blocks.

    Adds the interface of an interface block to `interfaces`.
    """
    if kind == _INTERFACE:
        interfaces.append(_interface(order, body))
        return None
    if kind == _PACKET:
        number, high, low, captured, original = struct.unpack_from(order + "IIIII", body)
    elif kind == _OLD_PACKET:
        number, _, high, low, captured, original = struct.unpack_from(order + "HHIIII", body)
    elif kind == _SIMPLE_PACKET:
        (original,) = struct.unpack_from(order + "I", body)
        counted.truncated += len(body) - 4 < original
        return _Packet(0, interfaces[0].link, body[4 : 4 + original])
    else:
        return None
    counted.truncated += captured < original
    interface = interfaces[number]
    time_us = ((high << 32) | low) * 1_000_000 // interface.units
    return _Packet(
        time_us + interface.offset_s * 1_000_000, interface.link, body[20 : 20 + captured]
    )


def _interface(order: str, body: bytes) -> _Interface:
    (link,) = struct.unpack_from(order + "H", body)
    units, offset = 1_000_000, 0
    position = 8
    while position + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, position)
        value = body[position + 4 : position + 4 + size]
        if code == 0:
            break
        if code == _UNITS_OPTION and value:
            power = value[0] & 0x7F
            units = 2**power if value[0] & 0x80 else 10**power
        elif code == _OFFSET_OPTION and len(value) == 8:
            (offset,) = struct.unpack(order + "q", value)
        position += 4 + (size + 3) // 4 * 4
    return _Interface(link, units, offset)
