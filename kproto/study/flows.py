"""Converts TCP segments of a capture, or entries of a recording, to the events of each connection.

In a capture, Kafka's connections must be detected: they have a port that the caller names, or bytes
that are requests. The client is the side without this port, the side that opened the connection, or
the side that sent the requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses
from .conversations import ConversationSplitter, Side, TrafficEvent
from .frame_splitter import FrameSplitter
from .recording import RecordingEntry
from .request_detection import RequestDetector, detector_for
from .tcp_streams import Gap, StreamData, TcpSegment, TcpStream

__all__ = ["ConnectionEvent", "OtherTraffic", "events_of_recording", "events_of_segments"]

#: Maximum number of bytes that are buffered before a connection is detected as Kafka's. After more
#: bytes, the connection counts as other traffic.
MAX_UNDECIDED_BYTES: Final = 4_194_304

#: Maximum number of connections that are tracked. If there are more, the oldest connection is
#: treated as ended.
MAX_FLOWS: Final = 10_000

#: How long segments are accepted after the end of their connection, in microseconds.
_LINGER_US: Final = 2_000_000

_Endpoint = tuple[str, int]


class ConnectionEvent(NamedTuple):
    """An event with the number of its connection, and client and broker as `host:port`."""

    connection: int
    client: str
    broker: str
    event: TrafficEvent


@dataclass(slots=True)
class OtherTraffic:
    """Counts the traffic of a capture that is not Kafka's.

    `connections` counts the connections in which no request was found. `other_ports` counts the
    segments without any of the `ports` that the caller of `events_of_segments` has named.
    """

    connections: int = 0
    other_ports: int = 0


def events_of_recording(
    entries: Iterable[RecordingEntry],
    *,
    keep_bytes: bool = False,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Iterator[ConnectionEvent]:
    """Yields the events of all connections in a recording.

    With `keep_bytes` the event of a response has the bytes of its request. `classes` has the
    classes of the messages by api key.
    """
    conversations: dict[int, tuple[ConversationSplitter, str, str]] = {}
    last_us = 0
    for entry in entries:
        last_us = entry.time_us
        if entry.connection not in conversations or entry.client is not None:
            addresses = (entry.client or "?", entry.target or "?")
            conversations[entry.connection] = (
                ConversationSplitter(keep_bytes=keep_bytes, classes=classes),
                *addresses,
            )
        conversation, client, broker = conversations[entry.connection]
        events: list[TrafficEvent] = []
        if entry.side is not None:
            events = conversation.feed(entry.side, entry.time_us, entry.data)
        if entry.closed is not None:
            events += conversation.end(entry.time_us)
            del conversations[entry.connection]
        for event in events:
            yield ConnectionEvent(entry.connection, client, broker, event)
    for number, (conversation, client, broker) in conversations.items():
        for event in conversation.end(last_us):
            yield ConnectionEvent(number, client, broker, event)


def events_of_segments(
    segments: Iterable[TcpSegment],
    ports: frozenset[int] = frozenset(),
    other_traffic: OtherTraffic | None = None,
    *,
    keep_bytes: bool = False,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Iterator[ConnectionEvent]:
    """Yields the events of Kafka's connections in a capture.

    A connection is Kafka's if one of its ports is in `ports`. If `ports` is empty, a connection is
    Kafka's if its bytes have a request. `other_traffic` counts other connections and segments. With
    `keep_bytes`, the event of a response also has the bytes of the request that it answers.
    `classes` has the classes of the messages by api key; a connection with any of their requests
    counts as Kafka's.
    """
    flows: dict[tuple[_Endpoint, _Endpoint], _Flow] = {}
    closing: deque[tuple[int, tuple[_Endpoint, _Endpoint], _Flow]] = deque()
    others = OtherTraffic() if other_traffic is None else other_traffic
    numbers = iter(range(1, 1 << 62))
    last_us = 0
    for segment in segments:
        last_us = segment.time_us
        ends = (segment.source, segment.target)
        key = ends if ends[0] <= ends[1] else (ends[1], ends[0])
        while closing and closing[0][0] + _LINGER_US < segment.time_us:
            _, closed_key, ended_flow = closing.popleft()
            if flows.get(closed_key) is ended_flow:
                yield from flows.pop(closed_key).end(last_us, others)
        flow = flows.get(key)
        if flow is not None and segment.is_syn and flow.is_new_connection(segment):
            yield from flows.pop(key).end(last_us, others)
            flow = None
        if flow is None:
            if _is_other_port(ends, ports):
                others.other_ports += 1
                continue
            if not (segment.is_syn or segment.data):
                continue
            if len(flows) >= MAX_FLOWS:
                yield from flows.pop(next(iter(flows))).end(last_us, others)
            flow = flows[key] = _Flow(numbers, ports, keep_bytes, classes)
        yield from flow.add(segment)
        if flow.has_ended and not flow.is_closing:
            flow.is_closing = True
            closing.append((segment.time_us, key, flow))
    for flow in flows.values():
        yield from flow.end(last_us, others)


def _is_other_port(ends: tuple[_Endpoint, _Endpoint], ports: frozenset[int]) -> bool:
    return bool(ports) and not any(port in ports for _, port in ends)


@dataclass(slots=True)
class _Flow:
    """Tracks a connection of a capture, before and after it is detected as Kafka's."""

    numbers: Iterator[int]
    ports: frozenset[int]
    keep_bytes: bool
    classes: MessageClasses
    is_closing: bool = False
    _streams: dict[_Endpoint, TcpStream] = field(default_factory=dict)
    _finished: set[_Endpoint] = field(default_factory=set)
    _is_reset: bool = False
    _client: _Endpoint | None = None  # None until the client side is detected
    _conversation: ConversationSplitter | None = None
    _number: int = 0
    _is_other_protocol: bool = False
    #: The bytes before the connection is detected as Kafka's; `_splitters` search them.
    _undecided: list[tuple[_Endpoint, int, bytes | Gap]] = field(default_factory=list)
    _undecided_bytes: int = 0
    _splitters: dict[_Endpoint, FrameSplitter] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        return self._is_reset or len(self._finished) == 2

    def is_new_connection(self, segment: TcpSegment) -> bool:
        """Returns True if a SYN opens a new connection between the endpoints of this connection."""
        stream = self._streams.get(segment.source)
        return stream is not None and stream.is_new_connection(segment.sequence)

    def add(self, segment: TcpSegment) -> Iterator[ConnectionEvent]:
        """Adds a segment, and yields the events that it completes.

        The bytes or the acknowledgement in the segment may complete an event.
        """
        if self._is_other_protocol:
            self._note_end(segment)
            return
        for end in (segment.source, segment.target):
            self._streams.setdefault(end, TcpStream())
        stream, reverse = self._streams[segment.source], self._streams[segment.target]
        if self._client is None:
            self._choose_client(segment)
        start = segment.sequence
        if segment.is_syn:
            stream.on_syn(start)
            start += 1
        if segment.acknowledged is not None:
            yield from self._deliver(segment.target, reverse.acknowledge(segment.acknowledged))
        pieces = stream.add(start, segment.data, segment.time_us)
        yield from self._deliver(segment.source, pieces)
        self._note_end(segment)

    def end(self, time_us: int, others: OtherTraffic) -> Iterator[ConnectionEvent]:
        """Yields the last events, when the connection or the capture ends.

        If the connection is not Kafka's, counts it in `others.connections`.
        """
        if not self._is_other_protocol:
            for end, stream in self._streams.items():
                yield from self._deliver(end, stream.end())
        if self._conversation is not None:
            yield from self._with_connection(self._conversation.end(time_us))
        elif self._undecided or self._is_other_protocol:
            others.connections += 1

    def _note_end(self, segment: TcpSegment) -> None:
        if segment.is_fin:
            self._finished.add(segment.source)
        self._is_reset = self._is_reset or segment.is_reset

    def _choose_client(self, segment: TcpSegment) -> None:
        """Sets the side of the client, if the segment shows it.

        If the port of only one side is in `ports`, the other side is the client. Otherwise the
        client is the sender of the SYN.
        """
        source, target = segment.source, segment.target
        if (source[1] in self.ports) != (target[1] in self.ports):
            self._client = target if source[1] in self.ports else source
        elif segment.is_syn:
            self._client = source if segment.acknowledged is None else target

    def _deliver(self, source: _Endpoint, pieces: list[StreamData]) -> Iterator[ConnectionEvent]:
        for time_us, piece in pieces:
            if self._conversation is not None:
                yield from self._feed(source, time_us, piece)
            elif not self._is_other_protocol:
                self._undecided.append((source, time_us, piece))
                self._undecided_bytes += 0 if isinstance(piece, Gap) else len(piece)
                if self._is_kafka(source, piece):
                    yield from self._start_conversation()
                elif self._undecided_bytes > MAX_UNDECIDED_BYTES:
                    self._is_other_protocol = True
                if self._is_other_protocol:
                    self._undecided.clear()
                    self._splitters.clear()

    def _is_kafka(self, source: _Endpoint, piece: bytes | Gap) -> bool:
        """Returns True if the connection is known to carry Kafka's protocol.

        The port shows the protocol. Without `ports`, a request from `source` shows it; `source` is
        then the client. `piece` has the next bytes that `source` sent. If the first bytes that
        `source` sent cannot begin a request, the connection is marked as another protocol.
        """
        if self.ports and self._client is not None:
            return True
        if isinstance(piece, Gap):
            self._splitters.pop(source, None)
            return False
        if self._client is not None and source != self._client:
            return False
        splitter = self._splitters.setdefault(source, FrameSplitter())
        is_first = not splitter.pending and self._streams[source].has_start
        splitter.feed(piece)
        detector = detector_for(self.classes)
        if is_first and len(piece) >= _START_BYTES and not _starts_request(piece, detector):
            self._is_other_protocol = True
            return False
        _, found = splitter.seek(detector.start, detector.may_be_request, detector.is_request)
        if found:
            self._client = source
        return found

    def _start_conversation(self) -> Iterator[ConnectionEvent]:
        has_start = all(stream.has_start for stream in self._streams.values())
        self._conversation = ConversationSplitter(
            from_middle=not has_start,
            keep_bytes=self.keep_bytes,
            may_be_late=True,
            classes=self.classes,
        )
        self._number = next(self.numbers)
        undecided, self._undecided = self._undecided, []
        self._splitters.clear()
        for source, time_us, piece in undecided:
            yield from self._feed(source, time_us, piece)

    def _feed(
        self, source: _Endpoint, time_us: int, piece: bytes | Gap
    ) -> Iterator[ConnectionEvent]:
        assert self._conversation is not None
        side = Side.CLIENT if source == self._client else Side.BROKER
        if isinstance(piece, Gap):
            yield from self._with_connection(self._conversation.missing(side, time_us, piece.size))
        else:
            yield from self._with_connection(self._conversation.feed(side, time_us, piece))

    def _with_connection(self, events: list[TrafficEvent]) -> Iterator[ConnectionEvent]:
        assert self._client is not None
        broker = next(end for end in self._streams if end != self._client)
        for event in events:
            yield ConnectionEvent(self._number, _address(self._client), _address(broker), event)


#: How many bytes at a position decide whether a request can begin at this position: size, api key
#: and version.
_START_BYTES: Final = 8


def _starts_request(piece: bytes, detector: RequestDetector) -> bool:
    return detector.start.match(piece) is not None and detector.may_be_request(piece[4:260])


def _address(end: _Endpoint) -> str:
    host, port = end
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
