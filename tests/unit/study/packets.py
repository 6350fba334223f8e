"""Builds packets of a TCP connection, and capture files of them, with dpkt or by hand."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import dpkt

from kproto.study.tcp_streams import TcpSegment

__all__ = ["FORMATS", "LINKS", "Link", "connection", "file_of"]

CLIENT, BROKER = ("10.0.0.1", 50_000), ("10.0.0.2", 9092)
START_US = 1_700_000_000_000_000


def connection(
    talk: Iterable[tuple[bytes, bytes]],
    *,
    size: int = 60,
    numbers: tuple[int, int] = (1000, (1 << 32) - 100),
    client: tuple[str, int] = CLIENT,
    broker: tuple[str, int] = BROKER,
) -> list[TcpSegment]:
    """Returns the TCP segments of a connection with the frames of `talk`, from SYN to FIN."""
    segments: list[TcpSegment] = []
    nexts = {client: numbers[0], broker: numbers[1]}

    def send(source: tuple[str, int], data: bytes = b"", **flags: bool) -> None:
        target = broker if source == client else client
        is_first = flags.get("syn", False) and source == client
        segments.append(
            TcpSegment(
                START_US + 1000 * len(segments),
                source,
                target,
                nexts[source],
                None if is_first else nexts[target],
                flags.get("syn", False),
                flags.get("fin", False),
                False,
                data,
            )
        )
        nexts[source] = (nexts[source] + len(data) + sum(flags.values())) % (1 << 32)

    send(client, syn=True)
    send(broker, syn=True)
    send(client)
    for asked, answer in talk:
        for source, data in ((client, asked), (broker, answer)):
            for start in range(0, len(data), size):
                send(source, data[start : start + size])
    send(client, fin=True)
    send(broker, fin=True)
    send(client)
    return segments


def _tcp(segment: TcpSegment) -> Any:
    flags = dpkt.tcp.TH_SYN * segment.is_syn | dpkt.tcp.TH_FIN * segment.is_fin
    if segment.acknowledged is not None:
        flags |= dpkt.tcp.TH_ACK
    return dpkt.tcp.TCP(
        sport=segment.source[1],
        dport=segment.target[1],
        seq=segment.sequence,
        ack=segment.acknowledged or 0,
        flags=flags,
        data=segment.data,
    )


def ip4(segment: TcpSegment) -> bytes:
    source, target = (bytes(map(int, end[0].split("."))) for end in segment[1:3])
    return bytes(dpkt.ip.IP(src=source, dst=target, p=6, data=_tcp(segment)))


def ip6(segment: TcpSegment) -> bytes:
    ends = [b"\xfd" + bytes(11) + bytes(map(int, end[0].split("."))) for end in segment[1:3]]
    tcp = bytes(_tcp(segment))
    return struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + ends[0] + ends[1] + tcp


MAC = bytes(12)


class Link(NamedTuple):
    """A link type, and the function that builds a packet for it."""

    number: int
    packet: Callable[[TcpSegment], bytes]


LINKS = {
    "Ethernet": Link(1, lambda s: MAC + b"\x08\x00" + ip4(s) + b"\0" * 6),  # with padding
    "Ethernet, IPv6": Link(1, lambda s: MAC + b"\x86\xdd" + ip6(s)),
    "VLAN": Link(1, lambda s: MAC + b"\x81\x00\x00\x05\x08\x00" + ip4(s)),
    "two VLAN tags": Link(1, lambda s: MAC + b"\x88\xa8\0\5\x81\0\0\6\x86\xdd" + ip6(s)),
    "cooked": Link(113, lambda s: struct.pack(">HHH8sH", 4, 1, 6, b"", 0x800) + ip4(s)),
    "cooked v2": Link(276, lambda s: struct.pack(">HHIHBB8s", 0x86DD, 0, 1, 1, 4, 6, b"") + ip6(s)),
    "loopback": Link(0, lambda s: struct.pack("<I", 2) + ip4(s)),
    "loopback, IPv6": Link(0, lambda s: struct.pack("<I", 30) + ip6(s)),
    "bare": Link(101, ip4),
    "bare, IPv6": Link(101, ip6),
}


def _by_dpkt(writer: Any) -> Callable[[Iterable[TcpSegment], Link], bytes]:
    def write(segments: Iterable[TcpSegment], link: Link) -> bytes:
        file = io.BytesIO()
        out = writer(file, link.number)
        for segment in segments:
            out.writepkt(link.packet(segment), segment.time_us / 1e6)
        return file.getvalue()

    return write


def _pcapng(file: io.BytesIO, link: int) -> Any:
    idb = dpkt.pcapng.InterfaceDescriptionBlockLE(linktype=link)
    return dpkt.pcapng.Writer(file, idb=idb)


def _pcap(file: io.BytesIO, link: int) -> Any:
    return dpkt.pcap.Writer(file, linktype=link)


def _big_endian_nanoseconds(segments: Iterable[TcpSegment], link: Link) -> bytes:
    out = struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, link.number)
    for segment in segments:
        data = link.packet(segment)
        seconds, us = divmod(segment.time_us, 1_000_000)
        out += struct.pack(">IIII", seconds, us * 1000, len(data), len(data)) + data
    return out


def _block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def _two_interfaces(segments: Iterable[TcpSegment], link: Link) -> bytes:
    """Returns a big-endian pcapng file of two interfaces, with nanosecond timestamps.

    All packets are of the second interface.
    """
    out = _block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1), ">")
    out += _block(1, struct.pack(">HHI", 147, 0, 0), ">")
    out += _block(1, struct.pack(">HHIHHBxxxHH", link.number, 0, 0, 9, 1, 9, 0, 0), ">")
    out += _block(5, b"statistics", ">")
    for segment in segments:
        data, time = link.packet(segment), segment.time_us * 1000
        head = struct.pack(">IIIII", 1, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        out += _block(6, head + data, ">")
    return out


FORMATS = {
    "pcap": _by_dpkt(_pcap),
    "pcapng": _by_dpkt(_pcapng),
    "pcap, nanoseconds, big-endian": _big_endian_nanoseconds,
    "pcapng, two interfaces": _two_interfaces,
}


def file_of(segments: Iterable[TcpSegment], link: str = "Ethernet", form: str = "pcap") -> bytes:
    """Returns the bytes of a capture file in format `form` with these segments."""
    return FORMATS[form](segments, LINKS[link])
