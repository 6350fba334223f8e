"""Sends frames to a broker that listens, and watches whether it lives on.

A broker may close a connection on what is broken, and may be silent on what it waits with. It may
not end, hang, or answer with what is no answer. That it closes on a request whose form is sound is
told, and harmless: the values may make no sense. Every wait and the rate
are bounded. Only this machine is sent to, unless the caller says otherwise twice.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ..messages import ApiVersionsRequest, ApiVersionsResponse
from ..messages.base import Message
from ..protocol.headers import (
    encode_request_header,
    parse_response_header,
    request_class,
    response_class,
)
from ..security.tls import TlsContexts
from ..wire.errors import BrokerConnectionError, ConfigurationError, DecodeError, KprotoError
from .broker_connection import PLAINTEXT, ConnectionSecurity, InvalidFrameError, connect, read_frame
from .case import MessageVersion
from .frame_generation import CLIENT_ID, FRAME_KINDS, Frame, generate_frames
from .frame_shrinking import smallest_frames
from .lenient_reader import UnreadableMessageError, walk_message

__all__ = ["BrokerFinding", "BrokerFuzzSettings", "BrokerResult", "fuzz_broker", "replay_frames"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFuzzSettings:
    """Limits of a run against a broker; ConfigurationError on one that is not positive."""

    #: Frames sent in all.
    frames: int = 2_000
    #: When the run ends, whatever is left.
    time_s: float = 60.0
    #: Frames a second, at most.
    rate: float = 200.0
    #: How long an answer is waited for. Requests that a broker holds back, as Fetch, take longer;
    #: so silence is no fault.
    quiet_s: float = 0.3
    #: How long a living broker may take to accept a connection and answer ApiVersions.
    alive_s: float = 5.0
    #: So long a broker that closed a connection is looked at, when a finding is tried again: one
    #: that crashes may answer others for a moment yet.
    dying_s: float = 1.0
    #: After so many frames that were answered it is asked whether it lives.
    check_every: int = 20
    #: Frames that are sent to make those of one finding smaller.
    shrink_attempts: int = 300
    #: Of those tries, such as end in silence or take the broker away, each of which takes a wait.
    shrink_waits: int = 30
    #: How long all of that may take.
    shrink_s: float = 60.0
    #: How long one that is gone is waited for, in case somebody starts it again.
    recovery_s: float = 3.0
    #: Largest answer that is read; those of Kafka's brokers to such requests are far smaller.
    max_answer_bytes: int = 16_777_216

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not value > 0:
                raise ConfigurationError(f"{entry.name} is {value}: it must be above 0")


#: What a broker may not do.
WORDS: Final = {
    "crashed": "it takes no connection any more",
    "hung": "it takes a connection and does not answer ApiVersions",
    "closed": "it closes the connection on a sound request",
    "malformed": "it answers with what is no answer to the request",
}

#: Those after which the broker is gone.
GONE: Final = frozenset({"crashed", "hung"})

#: How long is waited before one that is gone is looked for again.
_LOOK_S: Final = 0.05

#: What Kafka's own brokers do as well: values that the definition allows may still make no sense.
HARMLESS: Final = frozenset({"closed"})


@dataclass(slots=True)
class BrokerFinding:
    """Faults of one sort; `frames` are the shortest that showed one, to be sent again in order.

    `unshrunk` says why they were not made smaller, if they were not.
    """

    fault: str
    cause: str
    frames: list[Frame]
    count: int = 0
    where: Counter[tuple[str, int]] = field(default_factory=Counter)
    unshrunk: str = ""

    @property
    def harmless(self) -> bool:
        """Whether Kafka's own brokers do it."""
        return self.fault in HARMLESS


@dataclass(slots=True)
class BrokerResult:
    """What a run found: frames by kind, and what became of them.

    `stopped` says why a run ended early; `interrupted` is set where it was Ctrl-C.
    """

    address: str
    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[BrokerFinding] = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """The result as plain data, in the shape of the report of a command."""
        return {
            "implementation": f"the broker at {self.address}",
            "judge": "what a broker may do",
            "seed": self.seed,
            "cases": sum(self.outcomes.values()),
            "forms": 0,
            "outcomes": dict(sorted(self.outcomes.items())),
            "restarts": 0,
            "stopped": self.stopped or None,
            "findings": [_finding_to_json(finding) for finding in self.findings],
            "tried": {"frames": {"-": dict(sorted(self.tried.items()))}},
        }


def _finding_to_json(finding: BrokerFinding) -> dict[str, Any]:
    where: dict[str, list[int]] = {}
    for name, version in sorted(finding.where):
        where.setdefault(name, []).append(version)
    return {
        "fault": finding.fault,
        "words": WORDS[finding.fault],
        "harmless": finding.harmless,
        "operation": "frames",
        "trait": None,
        "cause": finding.cause or None,
        "count": finding.count,
        "where": where,
        "example": {"frames": [_frame_to_json(frame) for frame in finding.frames]},
        "right": None,
        "given": finding.cause,
        "unshrunk": finding.unshrunk or None,
    }


def _frame_to_json(frame: Frame) -> dict[str, Any]:
    node: dict[str, Any] = {"kind": frame.kind, "hex": frame.data.hex()}
    if frame.correlation_id is not None:
        node |= {"apiKey": frame.api_key, "version": frame.version, "id": frame.correlation_id}
    return node


def fuzz_broker(
    address: str,
    *,
    seed: int = 0,
    settings: BrokerFuzzSettings | None = None,
    kinds: tuple[str, ...] = tuple(FRAME_KINDS),
    anywhere: bool = False,
    shrink: bool = True,
    secured: ConnectionSecurity = PLAINTEXT,
    progress: Callable[[int, int], None] | None = None,
) -> BrokerResult:
    """Send frames to the broker at `host:port` and say what it did that it may not do.

    Ctrl-C ends the run early: the result is what was found until then.
    With `shrink` the frames of each finding are made as few and as short as can be found, at the
    same rate. For what takes the broker away somebody must start it again: it is waited for.
    `secured` says how to reach it: each frame goes out on a connection that is authenticated.

    Raises ConfigurationError on an address that is not of this machine, unless `anywhere`, and
    BrokerConnectionError when nobody answers there at the beginning.
    """
    limits = settings or BrokerFuzzSettings()
    target = _Target(address, limits, secured, anywhere=anywhere)
    versions = target.versions()
    result = BrokerResult(address, seed)
    try:
        _send_all(target, generate_frames(versions, seed, kinds), limits, result, progress)
        _sort(result)
        until = time.monotonic() + limits.shrink_s
        for finding in list(result.findings) if shrink else ():
            _shrink(result, finding, target, until)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
        result.interrupted = True
        _sort(result)
    return result


def _sort(result: BrokerResult) -> None:
    result.findings.sort(key=lambda it: (list(WORDS).index(it.fault), -it.count))


def _send_all(
    target: _Target,
    frames: Iterator[Frame],
    limits: BrokerFuzzSettings,
    result: BrokerResult,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Send frames until a limit is met or the broker is gone; count into `result`."""
    began = time.monotonic()
    since: list[Frame] = []
    answered = 0
    for number, frame in enumerate(frames):
        if number == limits.frames:
            break
        if time.monotonic() - began > limits.time_s:
            result.stopped = f"the time of {limits.time_s:g} s was over"
            break
        time.sleep(max(0.0, began + number / limits.rate - time.monotonic()))
        outcome, fault = target.send(frame)
        result.tried[frame.kind] += 1
        result.outcomes[outcome] += 1
        if fault is not None:
            _add(result, fault[0], fault[1], [frame])
        since.append(frame)
        answered += 1
        if outcome != "answered" or answered >= limits.check_every:
            liveness_fault = target.liveness_fault()
            if liveness_fault is not None:
                _add(result, liveness_fault[0], liveness_fault[1], since)
                result.stopped = f"the broker is gone: {liveness_fault[1]}"
                break
            since, answered = [], 0
        if progress:
            progress(number + 1, limits.frames)
    if since and not result.stopped.startswith("the broker"):
        liveness_fault = target.liveness_fault()
        if liveness_fault is not None:
            _add(result, liveness_fault[0], liveness_fault[1], since)


class _Enough(Exception):  # noqa: N818 - no error: the search ends
    """Nothing more is tried; the text says why."""


def _shrink(result: BrokerResult, finding: BrokerFinding, target: _Target, until: float) -> None:
    """Put the smallest frames that show the finding's fault in the place of those that were met.

    What takes the broker away on the way is a finding of its own.
    """
    limits = target.settings
    known: dict[tuple[bytes, ...], str | None] = {}
    best = last = tuple(finding.frames)
    attempts = waits = 0

    def shows(frames: tuple[Frame, ...]) -> bool:
        nonlocal best, last, attempts, waits
        key = tuple(frame.data for frame in frames)
        if key not in known:
            if attempts >= limits.shrink_attempts or waits >= limits.shrink_waits:
                return False
            if time.monotonic() > until:
                raise _Enough(f"the {limits.shrink_s:g} s for that were over")
            if not target.recovers():
                liveness_fault = (
                    None if finding.fault in GONE or not known else target.liveness_fault()
                )
                if liveness_fault is not None:
                    _add(result, liveness_fault[0], liveness_fault[1], list(last))
                raise _Enough("the broker is gone, and nobody started it again")
            attempts += len(frames)
            last = frames
            known[key], waited = target.shows(frames, finding.fault, finding.cause)
            waits += waited
        if known[key] is None:
            return False
        best = frames
        return True

    try:
        if not shows(best):
            raise _Enough("it did not show again")
        best = smallest_frames(best, shows)
    except _Enough as error:
        finding.unshrunk = str(error)
    cause = known.get(tuple(frame.data for frame in best))
    finding.frames, finding.cause = list(best), cause or finding.cause


def replay_frames(
    address: str,
    node: Any,
    *,
    settings: BrokerFuzzSettings | None = None,
    anywhere: bool = False,
    secured: ConnectionSecurity = PLAINTEXT,
) -> list[str]:
    """Send the frames of a report's example again; what became of each, and of the broker.

    Raises ConfigurationError on what is no such example.
    """
    frames = _frames_from_json(node)
    limits = settings or BrokerFuzzSettings()
    target = _Target(address, limits, secured, anywhere=anywhere)
    target.versions()
    said = []
    for frame in frames:
        outcome, fault = target.send(frame)
        said.append(outcome if fault is None else f"{fault[0]}: {fault[1]}")
    liveness_fault = target.liveness_fault()
    until = time.monotonic() + limits.dying_s
    while liveness_fault is None and "closed" in said and time.monotonic() < until:
        time.sleep(_LOOK_S)
        liveness_fault = target.liveness_fault()
    said.append(
        "it lives" if liveness_fault is None else f"{liveness_fault[0]}: {liveness_fault[1]}"
    )
    return said


def _frames_from_json(node: Any) -> list[Frame]:
    try:
        return [
            Frame(
                str(each.get("kind", "given")),
                bytes.fromhex(each["hex"]),
                _request_name(each.get("apiKey")),
                api_key=each.get("apiKey"),
                version=each.get("version"),
                correlation_id=each.get("id"),
            )
            for each in node["frames"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigurationError(
            "frames to replay are an object with the key frames: a list of objects with hex"
        ) from None


def _request_name(api_key: int | None) -> str:
    cls = None if api_key is None else request_class(api_key)
    return "" if cls is None else cls._definition().name


def _add(result: BrokerResult, fault: str, cause: str, frames: list[Frame]) -> None:
    for finding in result.findings:
        if (finding.fault, finding.cause) == (fault, cause):
            break
    else:
        finding = BrokerFinding(fault, cause, list(frames))
        result.findings.append(finding)
    finding.count += 1
    last = frames[-1]
    finding.where[last.name or last.kind, -1 if last.version is None else last.version] += 1
    if sum(len(it.data) for it in frames) < sum(len(it.data) for it in finding.frames):
        finding.frames = list(frames)


class _Target:
    """The broker: where it listens, and one connection at a time."""

    def __init__(
        self,
        address: str,
        settings: BrokerFuzzSettings,
        secured: ConnectionSecurity,
        *,
        anywhere: bool,
    ) -> None:
        host, colon, port = address.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigurationError(f"--broker is {address!r}: it must be HOST:PORT")
        self.address = address
        self.settings = settings
        self.contexts = TlsContexts(secured.tls)
        self.sasl = secured.sasl
        self.where = (host.strip("[]"), int(port))
        if not anywhere:
            self._refuse_elsewhere()

    def _refuse_elsewhere(self) -> None:
        try:
            found = {str(each[4][0]) for each in socket.getaddrinfo(*self.where)}
        except (OSError, UnicodeError) as error:  # a name that no host can have, such as `a..b`
            raise BrokerConnectionError(f"cannot be found: {error}", address=self.address) from None
        if not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found):
            raise ConfigurationError(
                f"{self.address} is not on this machine; broken frames may end a broker and lose "
                "what it stores. Say --not-loopback and --it-may-break if that is meant"
            )

    def versions(self) -> dict[int, range]:
        """The versions that the broker speaks, by api key. Raises BrokerConnectionError."""
        try:
            answer = self._api_versions()
        except BrokerConnectionError:
            raise
        except (OSError, UnicodeError, DecodeError) as error:
            raise BrokerConnectionError(
                f"does not answer ApiVersions: {error}", address=self.address
            ) from error
        return {
            each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys
        }

    def _api_versions(self) -> ApiVersionsResponse:
        request = encode_request_header(ApiVersionsRequest, 0, 1, CLIENT_ID)
        with self._connected() as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = self._frame(connection, self.settings.alive_s)
        if answer is None:
            raise ConnectionError("the connection was closed")
        _, at = parse_response_header(ApiVersionsResponse, 0, answer)
        return ApiVersionsResponse.decode_from(answer, at, 0)[0]

    def liveness_fault(self) -> tuple[str, str] | None:
        """The fault and its words when the broker does not live any more."""
        try:
            self._api_versions()
        except TimeoutError:
            return "hung", f"no answer to ApiVersions within {self.settings.alive_s:g} s"
        except (OSError, KprotoError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return "crashed", f"ApiVersions: {reason}"
        return None

    def recovers(self) -> bool:
        """Whether the broker lives, or does so again within the time that is waited for it."""
        until = time.monotonic() + self.settings.recovery_s
        while (liveness_fault := self.liveness_fault()) is not None:
            if liveness_fault[0] == "hung" or time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def shows(self, frames: Sequence[Frame], fault: str, cause: str) -> tuple[str | None, bool]:
        """The cause, when frames show a fault again; and whether that took a wait."""
        waited = False
        for frame in frames:
            time.sleep(1 / self.settings.rate)
            outcome, found = self.send(frame)
            waited = waited or outcome == "silent"
            if found == (fault, cause):
                return cause, waited
        if fault not in GONE:
            return None, waited
        liveness_fault = self.liveness_fault()
        if liveness_fault is None:
            return None, waited
        return (liveness_fault[1] if liveness_fault[0] == fault else None), True

    def send(self, frame: Frame) -> tuple[str, tuple[str, str] | None]:
        """Send a frame on a connection of its own; what became of it, and the fault in that."""
        try:
            with self._connected() as connection:
                try:
                    connection.sendall(frame.data)
                    if frame.kind == "cut" and not self.contexts.enabled:  # TLS has no half to end
                        connection.shutdown(socket.SHUT_WR)
                    answer = self._frame(connection, self.settings.quiet_s)
                except TimeoutError:
                    return "silent", None
                except InvalidFrameError as error:
                    cls = _expected(frame)
                    return "answered", ("malformed", f"{cls.__name__}: {error}") if cls else None
                except OSError:
                    answer = None
        except (OSError, KprotoError):
            return "no connection", None
        if answer is None:
            sound = frame.kind == "sound"
            return "closed", ("closed", frame.name) if sound else None
        return "answered", self._wrong(frame, answer)

    def _connected(self) -> socket.socket:
        limits = self.settings
        return connect(
            self.where,
            self.contexts,
            self.sasl,
            patience_s=limits.alive_s,
            most=limits.max_answer_bytes,
        )

    def _frame(self, connection: socket.socket, patience_s: float) -> bytes | None:
        return read_frame(connection, patience_s, self.settings.max_answer_bytes)

    def _wrong(self, frame: Frame, answer: bytes) -> tuple[str, str] | None:
        """What is wrong with an answer, where the bytes of the request tell what it must be."""
        cls = _expected(frame)
        if cls is None or frame.version is None:
            return None
        at = 0
        try:
            number, at = parse_response_header(cls, frame.version, answer)
            if number != frame.correlation_id:
                return "malformed", f"{cls.__name__}: the correlation id of another request"
            cls.decode_from(answer, at, frame.version)
        except DecodeError as error:
            if cls is ApiVersionsResponse and answer[4:6] == b"\x00\x23":
                return None  # an unsupported version is answered in the form of version 0
            if _as_kafka_reads(MessageVersion(cls._definition().name, frame.version), answer[at:]):
                return None  # a name that is not UTF-8, say, which the request had
            return "malformed", f"{cls.__name__}: {error.reason}"
        return None


def _expected(frame: Frame) -> type[Message] | None:
    """The response that a frame calls for; None where its bytes do not tell."""
    if frame.correlation_id is None or frame.api_key is None or frame.version is None:
        return None
    cls = response_class(frame.api_key)
    return cls if cls is not None and frame.version in cls.VALID_VERSIONS else None


def _as_kafka_reads(message_version: MessageVersion, data: bytes) -> bool:
    """Whether Kafka's classes read the bytes, though kproto does not."""
    try:
        walk_message(message_version.shape, data)
    except (UnreadableMessageError, RecursionError):
        return False
    return True
