"""Splits the bytes of a connection's two sides into requests and responses, and matches them.

`ConversationSplitter` gets the bytes of both sides and returns events. Unreadable bytes are not an
error, but an event with a note. If no bytes are skipped, the events of a side and its buffered
bytes together have all bytes of that side, so that a proxy can forward them. Raw SASL tokens after
SaslHandshake v0 are recognized. No response is expected to a request that brokers do not answer,
such as Produce with acks=0.
"""

from __future__ import annotations

import enum
import re
import struct
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Final

from ..messages.base import Message
from ..protocol.codes_in_messages import error_codes_in
from ..protocol.connection import ReceivedRequest, expects_response, read_request
from ..protocol.error_codes import error_code
from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..protocol.headers import API_VERSIONS
from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses, is_kafka_message
from ..protocol.received import ReceivedResponse, read_response
from ..wire.errors import DecodeError
from .frame_splitter import FrameSplitter
from .request_detection import detector_for

__all__ = [
    "KIND_DESCRIPTIONS",
    "ConversationSplitter",
    "EventKind",
    "Side",
    "TrafficEvent",
    "api_name",
    "error_counts",
]

#: Maximum number of in-flight requests of a connection. If there are more, the oldest request is
#: reported as unanswered, so that requests without responses cannot fill the memory. Real clients
#: have few in flight.
MAX_WAITING: Final = 10_000

#: Maximum number of a connection's responses that were captured before their requests.
MAX_EARLY: Final = 100

#: Maximum number of bytes of a side that are skipped in search of the next frame. The default
#: maximum size of a frame is smaller. If no frame is found within these bytes, the rest of the side
#: is not read.
MAX_SKIPPED_BYTES: Final = 134_217_728

_SASL_HANDSHAKE: Final = 17

#: How many raw tokens a client sends after SaslHandshake v0, by mechanism. With other mechanisms
#: (GSSAPI), frames count as tokens until one reads as a request.
_TOKENS: Final = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}

_KEY_VERSION_ID: Final = struct.Struct(">hhi")
_ID: Final = struct.Struct(">i")


class Side(enum.Enum):
    """The sender of bytes: client or broker."""

    CLIENT = "client"
    BROKER = "broker"


class EventKind(enum.Enum):
    """The kind of an event: a message, other bytes, missing bytes or a missing response."""

    #: A request or response that was read.
    MESSAGE = "message"
    #: A frame with an api key or version that no definition has.
    UNKNOWN = "unknown"
    #: A raw SASL token after SaslHandshake v0.
    TOKEN = "token"  # noqa: S105 - the kind of an event, no secret
    #: A frame that cannot be read; `note` has the reason.
    BROKEN = "broken"
    #: A response whose request was not captured.
    UNMATCHED = "unmatched"
    #: Bytes outside frames; only the first such event of a side has the reason in `note`.
    BYTES = "bytes"
    #: Bytes that were not captured, or were skipped; `size` is their number.
    MISSING = "missing"
    #: A request whose response was not captured; the event has no bytes.
    UNANSWERED = "unanswered"


#: The text for each kind in printed lines. A MESSAGE and a TOKEN need none.
KIND_DESCRIPTIONS: Final = {
    EventKind.UNKNOWN: "no definition has this api key or version",
    EventKind.BROKEN: "cannot be read",
    EventKind.UNMATCHED: "unmatched response",
    EventKind.BYTES: "no frame",
    EventKind.MISSING: "missing",
    EventKind.UNANSWERED: "unanswered",
}


@dataclass(frozen=True, slots=True)
class TrafficEvent:
    """A request, a response, or bytes that are neither; `kind` says why they are neither.

    Times are in microseconds, sizes in bytes. `data` has the captured bytes, with the size field of
    a frame; `size` does not count the size field. An event of a response has the event of its
    request in `request`, and the latency if that is known. `errors` counts the error codes of the
    response by name. The event in `request` has bytes in `data` only if the conversation has
    `keep_bytes`; without it, only an ApiVersions request has a message in `received`.
    """

    time_us: int
    side: Side
    kind: EventKind
    data: bytes
    size: int
    api_key: int | None = None
    version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    latency_us: int | None = None
    errors: tuple[tuple[str, int], ...] = ()
    note: str = ""
    request: TrafficEvent | None = None
    received: ReceivedRequest | ReceivedResponse | None = None
    #: False for a request to which the broker sends no response, such as Produce with acks=0.
    is_answered: bool = True
    #: The classes by which the frame was read.
    classes: MessageClasses = field(default=KAFKA_MESSAGES, repr=False, compare=False)

    @property
    def is_token(self) -> bool:
        """Returns True if the event is a raw SASL token, or reports a token without an answer."""
        return self.kind is EventKind.TOKEN or (
            self.request is not None and self.request.kind is EventKind.TOKEN
        )

    @property
    def api(self) -> str:
        """Returns the name of the API without Request or Response, such as `Fetch`."""
        if self.is_token:
            return "SASL token"
        return "unknown" if self.api_key is None else api_name(self.api_key, self.classes)


def api_name(api_key: int, classes: MessageClasses = KAFKA_MESSAGES) -> str:
    """Returns the name of the API, such as `Fetch`; `api key 999` if no definition has the key."""
    cls = classes.request(api_key)
    return f"api key {api_key}" if cls is None else cls.__name__.removesuffix("Request")


class ConversationSplitter:
    """Splits a connection between a client and a broker into events.

    `feed` must get the bytes of each side in order, and `missing` must be called for a gap. With
    `from_middle` the first bytes may be inside a frame. With `keep_bytes` the event of a response
    also has the bytes of the request. With `may_be_late` a response may be fed before its request,
    because in a capture the packets of the two sides may be out of order. `classes` has the classes
    of the messages by api key.
    """

    def __init__(
        self,
        *,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        from_middle: bool = False,
        keep_bytes: bool = False,
        max_skipped_bytes: int = MAX_SKIPPED_BYTES,
        may_be_late: bool = False,
        classes: MessageClasses = KAFKA_MESSAGES,
    ) -> None:
        self._classes = classes
        self._splitters = {side: FrameSplitter(max_frame_bytes) for side in Side}
        self._arrivals = {side: _ArrivalTimes() for side in Side}
        self._seeks = dict.fromkeys(Side, from_middle)
        self._loss_reported = dict.fromkeys(Side, False)
        self._skipped = dict.fromkeys(Side, 0)
        self._is_whole = not from_middle
        self._keep_bytes = keep_bytes
        self._max_skipped = max_skipped_bytes
        self._waiting: deque[TrafficEvent] = deque()
        self._may_be_late = may_be_late
        #: Responses whose requests may still be captured, by correlation id.
        self._early: dict[int, tuple[int, bytes]] = {}
        #: The number of expected SASL tokens; 0 if any number may follow, None if no token is
        #: expected.
        self._tokens: int | None = None
        self._client_id: str | None = None

    @property
    def waiting(self) -> int:
        """Returns the number of in-flight requests."""
        return len(self._waiting)

    def pending(self, side: Side) -> int:
        """Returns how many bytes of `side` are buffered, because their frame is incomplete."""
        return self._splitters[side].pending

    def feed(self, side: Side, time_us: int, data: bytes) -> list[TrafficEvent]:
        """Adds bytes of `side` captured at `time_us`; returns the events that these bytes complete.

        The time of a frame's event is the capture time of its last byte, even if the frame is found
        later.
        """
        splitter, arrivals = self._splitters[side], self._arrivals[side]
        arrivals.note(len(data), time_us, splitter.pending)
        splitter.feed(data)
        events: list[TrafficEvent] = []
        while True:
            if self._seeks[side]:
                self._seek(side, time_us, events)
                if self._seeks[side]:
                    return events
            while (whole := splitter.next_frame()) is not None:
                came_us = arrivals.last(splitter.pending)
                if side is Side.CLIENT:
                    self._take_request(came_us, whole, events)
                else:
                    self._take_response(came_us, whole, events)
            if splitter.lost is None or self._is_whole or self._loss_reported[side]:
                break
            splitter.lost = None  # bytes are missing: search for the next frame
            self._seeks[side] = True
        if splitter.lost is not None and (rest := splitter.take_unframed()):
            note = "" if self._loss_reported[side] else splitter.lost
            self._loss_reported[side] = True
            events.append(TrafficEvent(time_us, side, EventKind.BYTES, rest, len(rest), note=note))
        return events

    def missing(self, side: Side, time_us: int, count: int) -> list[TrafficEvent]:
        """Handles a gap: `count` bytes of `side` were not captured.

        Returns a list with a MISSING event. The list is empty if an earlier event reported that the
        bytes of the side cannot be split into frames. The next `feed` searches for the start of a
        frame.
        """
        splitter = self._splitters[side]
        rest = splitter.take_unframed()
        note = f"{count} bytes were not captured"
        if rest:
            note += f", after {len(rest)} of an incomplete frame"
        self._is_whole = False
        self._tokens = None
        if self._loss_reported[side]:
            return []
        self._seeks[side] = True
        return [TrafficEvent(time_us, side, EventKind.MISSING, rest, count, note=note)]

    def end_side(self, side: Side, time_us: int) -> list[TrafficEvent]:
        """Returns an event with the buffered bytes of `side`, which has closed its direction.

        The list is empty if there are no buffered bytes.
        """
        rest = self._splitters[side].take_unframed()
        if not rest:
            return []
        what = "after missing bytes" if self._seeks[side] else "of an incomplete frame"
        note = f"the stream ended with {len(rest)} bytes {what}"
        return [TrafficEvent(time_us, side, EventKind.BYTES, rest, len(rest), note=note)]

    def end(self, time_us: int) -> list[TrafficEvent]:
        """Returns the events at the end of a connection.

        They report incomplete frames, unanswered requests, and responses whose requests were not
        captured.
        """
        events = [event for side in Side for event in self.end_side(side, time_us)]
        while self._waiting:
            events.append(_unanswered(time_us, self._waiting.popleft()))
        events += [_unmatched(when, whole) for when, whole in self._early.values()]
        self._early.clear()
        return events

    def _seek(self, side: Side, time_us: int, events: list[TrafficEvent]) -> None:
        splitter = self._splitters[side]
        before = splitter.pending
        if side is Side.CLIENT:
            detector = detector_for(self._classes)
            skipped, found = splitter.seek(
                detector.start, detector.may_be_request, detector.is_request
            )
        elif ids := list(dict.fromkeys(_ID.pack(e.correlation_id or 0) for e in self._waiting)):
            # Brokers answer in order, so the first ids suffice; more would make the search slow.
            start = b"[\x00-\x07][\x00-\xff]{3}(?:%b)" % b"|".join(map(re.escape, ids[:64]))
            skipped, found = splitter.seek(
                re.compile(start, re.DOTALL), _anything, self._is_response
            )
        else:
            splitter.take_unframed()  # no request was captured
            skipped, found = before, False
        self._skipped[side] += skipped
        if found or self._skipped[side] > self._max_skipped:
            if self._skipped[side]:
                count = self._skipped[side]
                note = f"{count} bytes skipped " + (
                    "up to the next frame" if found else "without a frame; this side is abandoned"
                )
                events.append(TrafficEvent(time_us, side, EventKind.MISSING, b"", count, note=note))
            self._skipped[side] = 0
            self._seeks[side] = False
        if not found and not self._seeks[side]:
            splitter.lost = "no frame was found"
            self._loss_reported[side] = True
            splitter.take_unframed()

    def _is_response(self, content: bytes) -> bool:
        if len(content) < _ID.size:
            return False
        (correlation_id,) = _ID.unpack_from(content)
        for request in self._waiting:
            if request.correlation_id == correlation_id and request.version is not None:
                try:
                    found = read_response(
                        content, request.api_key or 0, request.version, self._classes
                    )
                except DecodeError:
                    return False
                return not found.trailing
        return False

    def _take_request(self, time_us: int, whole: bytes, events: list[TrafficEvent]) -> None:
        content = whole[4:]
        if self._tokens is not None:
            if self._tokens or not detector_for(self._classes).is_request(content):
                self._tokens = max(0, self._tokens - 1)
                token = TrafficEvent(
                    time_us,
                    Side.CLIENT,
                    EventKind.TOKEN,
                    whole,
                    len(content),
                    client_id=self._client_id,
                )
                self._expect(token, events)
                events.append(token)
                return
            self._tokens = None
        request = _request_event(time_us, whole, content, self._classes)
        if request.client_id is not None:
            self._client_id = request.client_id
        events.append(request)
        if request.is_answered and request.correlation_id is not None:
            early = self._early.pop(request.correlation_id, None)
            if early is None:
                self._expect(request, events)
            else:
                when, answer = early
                # The response was captured before the request, so the latency is unknown.
                response = _response_event(when, answer, answer[4:], request)
                events.append(replace(response, latency_us=None))
        if _is_sasl_handshake(request):
            received = request.received
            mechanism = "" if received is None else getattr(received.message, "mechanism", "")
            self._tokens = _TOKENS.get(mechanism, 0)

    def _expect(self, request: TrafficEvent, events: list[TrafficEvent]) -> None:
        if len(self._waiting) >= MAX_WAITING:
            events.append(_unanswered(request.time_us, self._waiting.popleft()))
        kept = request
        if not self._keep_bytes:
            keeps_message = request.api_key == API_VERSIONS  # it names the client's software
            received = request.received if keeps_message else None
            kept = replace(request, data=b"", received=received)
        self._waiting.append(kept)

    def _take_response(self, time_us: int, whole: bytes, events: list[TrafficEvent]) -> None:
        content = whole[4:]
        request = self._match_request(time_us, content, events)
        if request is None:
            if not self._may_be_late or len(content) < _ID.size:
                events.append(_unmatched(time_us, whole))
                return
            self._early.setdefault(_ID.unpack_from(content)[0], (time_us, whole))
            if len(self._early) > MAX_EARLY:
                events.append(_unmatched(*self._early.pop(next(iter(self._early)))))
            return
        response = _response_event(time_us, whole, content, request)
        events.append(response)
        refused = any(count for _, count in response.errors)
        if request.api_key == _SASL_HANDSHAKE and request.version == 0 and refused:
            self._tokens = None

    def _match_request(
        self, time_us: int, content: bytes, events: list[TrafficEvent]
    ) -> TrafficEvent | None:
        """Returns the request of a response, None if it was not captured.

        Adds an UNANSWERED event for each earlier request, because brokers answer in order.
        """
        waiting = self._waiting
        if waiting and waiting[0].kind is EventKind.TOKEN:
            return waiting.popleft()
        if len(content) < _ID.size:
            return None
        (correlation_id,) = _ID.unpack_from(content)
        if all(request.correlation_id != correlation_id for request in waiting):
            return None
        while waiting:
            request = waiting.popleft()
            if request.correlation_id == correlation_id:
                return request
            events.append(_unanswered(time_us, request))
        return None


#: Maximum number of capture times that are kept for an incomplete frame. If there are more, every
#: second time is dropped, so a frame may get the time of later bytes.
_MAX_MARKS: Final = 4096


class _ArrivalTimes:
    """Tracks the capture times of a side's buffered bytes."""

    def __init__(self) -> None:
        #: The number of bytes up to each capture time, and that time.
        self._marks: deque[tuple[int, int]] = deque()
        self._count = 0

    def note(self, count: int, time_us: int, pending: int) -> None:
        """Records that `count` bytes were captured at `time_us`.

        `pending` bytes that were captured before are still buffered.
        """
        if not pending:
            self._marks.clear()
        self._count += count
        self._marks.append((self._count, time_us))
        if len(self._marks) > _MAX_MARKS:  # a large frame arrives in many small pieces
            self._marks = deque([*self._marks][::-2][::-1])  # keeps the last entry

    def last(self, pending: int) -> int:
        """Returns the capture time, in µs, of the byte before the newest `pending` bytes."""
        marks, position = self._marks, self._count - pending
        while marks[0][0] < position:
            marks.popleft()
        return marks[0][1]


def _is_sasl_handshake(request: TrafficEvent) -> bool:
    """Returns True for a SaslHandshake v0, after which the client sends raw tokens."""
    if request.api_key != _SASL_HANDSHAKE or request.version != 0 or request.received is None:
        return False
    message = request.received.message
    # Compared by name, because Kafka's messages may also be generated in another package.
    return message is not None and type(message)._generated().__name__ == "SaslHandshakeRequest"


def _request_event(
    time_us: int, whole: bytes, content: bytes, classes: MessageClasses
) -> TrafficEvent:
    size = len(content)
    try:
        received = read_request(content, classes)
    except DecodeError as error:
        api_key = version = correlation_id = None
        note = str(error)
        if size >= _KEY_VERSION_ID.size:
            api_key, version, correlation_id = _KEY_VERSION_ID.unpack_from(content)
            if classes.request(api_key) is None:
                # The frame may be a SASL token without a handshake, so no bytes of it are shown.
                correlation_id = None
                note = "no definition has its api key, and its header is invalid"
        return TrafficEvent(
            time_us,
            Side.CLIENT,
            EventKind.BROKEN,
            whole,
            size,
            api_key,
            version,
            correlation_id,
            note=note,
            classes=classes,
        )
    message = received.message
    return TrafficEvent(
        time_us,
        Side.CLIENT,
        EventKind.UNKNOWN if message is None else EventKind.MESSAGE,
        whole,
        size,
        received.api_key,
        received.version,
        received.correlation_id,
        received.client_id,
        received=received,
        note=_trailing_note(received.trailing),
        is_answered=message is None or expects_response(message, received.version),
        classes=classes,
    )


def _response_event(
    time_us: int, whole: bytes, content: bytes, request: TrafficEvent
) -> TrafficEvent:
    kind, note = EventKind.MESSAGE, ""
    errors: tuple[tuple[str, int], ...] = ()
    received: ReceivedResponse | None = None
    if request.kind is EventKind.TOKEN:
        kind = EventKind.TOKEN
    else:
        assert request.api_key is not None
        assert request.version is not None
        try:
            received = read_response(content, request.api_key, request.version, request.classes)
        except DecodeError as error:
            kind, note = EventKind.BROKEN, str(error)
        else:
            note = _trailing_note(received.trailing)
            if received.message is None:
                kind = EventKind.UNKNOWN
            else:
                errors = tuple(error_counts(received.message).items())
    return TrafficEvent(
        time_us,
        Side.BROKER,
        kind,
        whole,
        len(content),
        request.api_key,
        request.version if received is None else received.version,
        request.correlation_id,
        request.client_id,
        time_us - request.time_us,
        errors,
        note,
        request,
        received,
        classes=request.classes,
    )


def _trailing_note(trailing: bytes) -> str:
    return f"{len(trailing)} bytes after the body" if trailing else ""


def _unmatched(time_us: int, whole: bytes) -> TrafficEvent:
    content = whole[4:]
    return TrafficEvent(
        time_us,
        Side.BROKER,
        EventKind.UNMATCHED,
        whole,
        len(content),
        correlation_id=_ID.unpack_from(content)[0] if len(content) >= _ID.size else None,
        note="no request with its correlation id was seen",
    )


def _unanswered(time_us: int, request: TrafficEvent) -> TrafficEvent:
    note = "no response was seen"
    return replace(
        request,
        time_us=time_us,
        side=Side.BROKER,
        kind=EventKind.UNANSWERED,
        data=b"",
        size=0,
        note=note,
        request=request,
        received=None,
    )


def _anything(head: bytes) -> bool:
    return True


def error_counts(message: Message) -> dict[str, int]:
    """Returns how often each error code occurs in a message, by name; leaves out NONE.

    Only Kafka's error codes have names. In a message of another package, error code 5 is called
    `error code 5`.
    """
    counts = Counter(error_codes_in(message))
    counts.pop(0, None)
    if not is_kafka_message(type(message)):
        return {f"error code {code}": count for code, count in sorted(counts.items())}
    return {error_code(code).name: count for code, count in sorted(counts.items())}
