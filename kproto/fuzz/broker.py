"""Sends frames to a running broker, and checks its responses and that it stays alive.

A broker may close the connection on a broken request, and may delay a response. A broker must not
end, hang, or send an invalid response. If a broker closes the connection on a valid request, the
finding is harmless, because the random values of the request may be meaningless. Frames are sent
only to this machine, unless `allow_remote` is set.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

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
from ..wire.listener_prefix import split_prefix
from .broker_connection import PLAINTEXT, ConnectionSecurity, InvalidFrameError, connect, read_frame
from .case import MessageVersion
from .frame_generation import CLIENT_ID, FRAME_KINDS, Frame, generate_frames
from .frame_shrinking import smallest_frames
from .lenient_reader import UnreadableMessageError, walk_message

__all__ = [
    "BrokerFinding",
    "BrokerFuzzSettings",
    "BrokerResult",
    "FrameOutcome",
    "fuzz_broker",
    "replay_frames",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFuzzSettings:
    """The limits of a run against a broker.

    Raises ConfigurationError for a limit that is not positive.
    """

    #: Maximum number of frames that are sent before the findings are shrunk.
    frames: int = 2_000
    #: Seconds after which no more frames are sent, except to shrink the findings.
    time_s: float = 60.0
    #: Maximum number of frames that are sent per second.
    rate: float = 200.0
    #: How long to wait for a response, in seconds. A missing response is no fault, because brokers
    #: delay the responses to some requests, such as Fetch.
    quiet_s: float = 0.3
    #: How many seconds a broker may take to accept a connection, and then to answer ApiVersions.
    alive_s: float = 5.0
    #: If the broker closes the connection in a replay: for how many seconds the replay then checks
    #: that the broker is alive. A crashing broker may at first still answer on other connections.
    dying_s: float = 1.0
    #: How many frames may be answered before the next check that the broker is alive.
    check_every: int = 20
    #: Maximum number of frames that are sent to shrink the frames of a finding.
    shrink_attempts: int = 300
    #: Shrinking a finding stops after this number of attempts that end without a response or with a
    #: crash. Each such attempt waits for a timeout or a restart.
    shrink_waits: int = 30
    #: How long the shrinking of all findings may take, in seconds.
    shrink_s: float = 60.0
    #: How long to wait until a supervisor restarts a crashed broker, in seconds.
    recovery_s: float = 3.0
    #: Maximum size of a response in bytes; Kafka's responses to these requests are far smaller.
    max_answer_bytes: int = 16_777_216

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not value > 0:
                raise ConfigurationError(f"{entry.name} is {value}: it must be above 0")


#: A description of each fault of a broker.
WORDS: Final = {
    "crashed": "it accepts no connection any more",
    "hung": "it accepts a connection and does not answer ApiVersions",
    "closed": "it closes the connection on a valid request",
    "malformed": "it sends an invalid response to the request",
}

#: The faults after which the broker answers on no connection.
GONE: Final = frozenset({"crashed", "hung"})

#: Seconds between two checks whether a crashed broker was restarted.
_POLL_INTERVAL_S: Final = 0.05

#: Faults that Kafka's own brokers have too, because random valid values may be meaningless.
HARMLESS: Final = frozenset({"closed"})


class FrameOutcome(NamedTuple):
    """The outcome of a replayed frame: a text, and the fault as a key of WORDS.

    `fault` is None if the frame caused no fault.
    """

    text: str
    fault: str | None

    @property
    def is_harmful(self) -> bool:
        """Returns True if the outcome is a fault, and Kafka's brokers do not have this fault."""
        return self.fault is not None and self.fault not in HARMLESS


@dataclass(slots=True)
class BrokerFinding:
    """The faults of one run that have the same `fault` (a key of WORDS) and the same `cause`.

    `frames` are the shortest frames found that cause the fault, in the order to send them.
    `locations` has the number of faults by request name (or kind of frame) and version (-1 if
    unknown). `unshrunk` is the reason if shrinking the frames stopped early, else "".
    """

    fault: str
    cause: str
    frames: list[Frame]
    count: int = 0
    locations: Counter[tuple[str, int]] = field(default_factory=Counter)
    unshrunk: str = ""

    @property
    def harmless(self) -> bool:
        """Returns True if Kafka's own brokers have the fault too."""
        return self.fault in HARMLESS


@dataclass(slots=True)
class BrokerResult:
    """The findings of a run against a broker.

    `tried` counts the frames by kind, `outcomes` counts them by outcome (`answered`, `closed`,
    `silent`, `no connection`). `stopped` is the reason if the run ended early, else "".
    `interrupted` is True after Ctrl-C.
    """

    address: str
    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[BrokerFinding] = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the result as JSON data with the keys of `report.to_json`."""
        return {
            "implementation": f"the broker at {self.address}",
            "judge": "the rules for brokers",
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
    locations: dict[str, list[int]] = {}
    for name, version in sorted(finding.locations):
        locations.setdefault(name, []).append(version)
    return {
        "fault": finding.fault,
        "words": WORDS[finding.fault],
        "harmless": finding.harmless,
        "operation": "frames",
        "trait": None,
        "cause": finding.cause or None,
        "count": finding.count,
        "where": locations,
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
    allow_remote: bool = False,
    shrink: bool = True,
    secured: ConnectionSecurity = PLAINTEXT,
    progress: Callable[[int, int], None] | None = None,
) -> BrokerResult:
    """Sends frames to the broker at `address` (`host:port`), and returns the faults of the broker.

    Ctrl-C ends the run early, and the findings so far are returned. With `shrink` the frames of
    each finding are made as few and as short as the limits allow. To shrink the frames of a crash,
    the run waits up to `recovery_s` for a supervisor to restart the broker. Each frame is sent on a
    new connection with the TLS and SASL of `secured`. `kinds` are keys of FRAME_KINDS. `progress`
    is called with the number of sent frames and the number of all frames.

    Raises ConfigurationError for an address of another machine, unless `allow_remote`. Raises
    BrokerConnectionError if the broker does not answer ApiVersions at the start, and
    AuthenticationError if it refuses the SASL authentication.
    """
    limits = settings or BrokerFuzzSettings()
    target = _Target(address, limits, secured, allow_remote=allow_remote)
    versions = target.versions()
    result = BrokerResult(address, seed)
    try:
        _send_all(target, generate_frames(versions, seed, kinds), limits, result, progress)
        _sort_findings(result)
        until = time.monotonic() + limits.shrink_s
        for finding in list(result.findings) if shrink else ():
            _shrink(result, finding, target, until)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
        result.interrupted = True
        _sort_findings(result)
    return result


def _sort_findings(result: BrokerResult) -> None:
    result.findings.sort(key=lambda it: (list(WORDS).index(it.fault), -it.count))


def _send_all(
    target: _Target,
    frames: Iterator[Frame],
    limits: BrokerFuzzSettings,
    result: BrokerResult,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Sends frames until a limit is reached or the broker is gone; adds the faults to `result`."""
    started = time.monotonic()
    unchecked: list[Frame] = []
    answered = 0
    for number, frame in enumerate(frames):
        if number == limits.frames:
            break
        if time.monotonic() - started > limits.time_s:
            result.stopped = f"the limit of {limits.time_s:g} s was reached"
            break
        time.sleep(max(0.0, started + number / limits.rate - time.monotonic()))
        outcome, fault = target.send(frame)
        result.tried[frame.kind] += 1
        result.outcomes[outcome] += 1
        if fault is not None:
            _add(result, fault[0], fault[1], [frame])
        unchecked.append(frame)
        answered += 1
        if outcome != "answered" or answered >= limits.check_every:
            liveness_fault = target.liveness_fault()
            if liveness_fault is not None:
                _add(result, liveness_fault[0], liveness_fault[1], unchecked)
                result.stopped = f"the broker is gone: {liveness_fault[1]}"
                break
            unchecked, answered = [], 0
        if progress:
            progress(number + 1, limits.frames)
    if unchecked and not result.stopped.startswith("the broker"):
        liveness_fault = target.liveness_fault()
        if liveness_fault is not None:
            _add(result, liveness_fault[0], liveness_fault[1], unchecked)


class _StopShrinking(Exception):  # noqa: N818 - not an error: it ends the search
    """Ends the search for smaller frames; its text is the reason."""


def _shrink(result: BrokerResult, finding: BrokerFinding, target: _Target, until: float) -> None:
    """Replaces the frames of a finding by the smallest frames that cause the same fault.

    Stops at the time `until` (`time.monotonic`) at the latest. If smaller frames crash the broker,
    adds the crash to the findings.
    """
    limits = target.settings
    known: dict[tuple[bytes, ...], str | None] = {}
    best = last = tuple(finding.frames)
    attempts = waits = 0

    def reproduces(frames: tuple[Frame, ...]) -> bool:
        nonlocal best, last, attempts, waits
        key = tuple(frame.data for frame in frames)
        if key not in known:
            if attempts >= limits.shrink_attempts or waits >= limits.shrink_waits:
                return False
            if time.monotonic() > until:
                raise _StopShrinking(f"the limit of {limits.shrink_s:g} s was reached")
            if not target.recovers():
                liveness_fault = (
                    None if finding.fault in GONE or not known else target.liveness_fault()
                )
                if liveness_fault is not None:
                    _add(result, liveness_fault[0], liveness_fault[1], list(last))
                raise _StopShrinking("the broker is gone, and was not restarted")
            attempts += len(frames)
            last = frames
            known[key], waited = target.reproduces(frames, finding.fault, finding.cause)
            waits += waited
        if known[key] is None:
            return False
        best = frames
        return True

    try:
        if not reproduces(best):
            raise _StopShrinking("the fault did not occur again")
        best = smallest_frames(best, reproduces)
    except _StopShrinking as error:
        finding.unshrunk = str(error)
    cause = known.get(tuple(frame.data for frame in best))
    finding.frames, finding.cause = list(best), cause or finding.cause


def replay_frames(
    address: str,
    node: Any,
    *,
    settings: BrokerFuzzSettings | None = None,
    allow_remote: bool = False,
    secured: ConnectionSecurity = PLAINTEXT,
) -> list[FrameOutcome]:
    """Resends the frames of an example from a report; `node` is the example's JSON data.

    Returns the outcome of each frame, and a last outcome: that the broker is alive, or its fault.
    Raises ConfigurationError if `node` is not an example with frames, and the errors of
    `fuzz_broker`.
    """
    frames = _frames_from_json(node)
    limits = settings or BrokerFuzzSettings()
    target = _Target(address, limits, secured, allow_remote=allow_remote)
    target.versions()
    outcomes = [_frame_outcome(*target.send(frame)) for frame in frames]
    liveness_fault = target.liveness_fault()
    is_closed = any(each.text == "closed" for each in outcomes)
    until = time.monotonic() + limits.dying_s
    while liveness_fault is None and is_closed and time.monotonic() < until:
        time.sleep(_POLL_INTERVAL_S)
        liveness_fault = target.liveness_fault()
    return [*outcomes, _frame_outcome("the broker is alive", liveness_fault)]


def _frame_outcome(text: str, fault: tuple[str, str] | None) -> FrameOutcome:
    if fault is None:
        return FrameOutcome(text, None)
    name, cause = fault
    return FrameOutcome(f"{name}: {cause}", name)


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
    finding.locations[last.name or last.kind, -1 if last.version is None else last.version] += 1
    if sum(len(it.data) for it in frames) < sum(len(it.data) for it in finding.frames):
        finding.frames = list(frames)


class _Target:
    """Sends frames to the broker under test, each on a new connection."""

    def __init__(
        self,
        address: str,
        settings: BrokerFuzzSettings,
        secured: ConnectionSecurity,
        *,
        allow_remote: bool,
    ) -> None:
        _, address = split_prefix(address)
        host, colon, port = address.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigurationError(f"--broker is {address!r}: it must be HOST:PORT")
        self.address = address
        self.settings = settings
        self.contexts = TlsContexts(secured.tls)
        self.sasl = secured.sasl
        self.endpoint = (host.strip("[]"), int(port))
        if not allow_remote:
            self._require_loopback()

    def _require_loopback(self) -> None:
        try:
            found = {str(each[4][0]) for each in socket.getaddrinfo(*self.endpoint)}
        except (OSError, UnicodeError) as error:  # an invalid host name, such as `a..b`
            raise BrokerConnectionError(f"cannot be found: {error}", address=self.address) from None
        if not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found):
            raise ConfigurationError(
                f"{self.address} is not on this machine; broken frames may crash a broker and lose "
                "its records. Add --not-loopback and --it-may-break to allow that"
            )

    def versions(self) -> dict[int, range]:
        """Returns the versions that the broker supports, by api key.

        Raises BrokerConnectionError if the broker does not answer ApiVersions.
        """
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
        """Returns the fault and its cause if the broker does not answer ApiVersions, else None."""
        try:
            self._api_versions()
        except TimeoutError:
            return "hung", f"no answer to ApiVersions within {self.settings.alive_s:g} s"
        except (OSError, KprotoError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return "crashed", f"ApiVersions: {reason}"
        return None

    def recovers(self) -> bool:
        """Returns True if the broker is alive, or becomes alive within `recovery_s`.

        Returns False at once for a broker that hangs.
        """
        until = time.monotonic() + self.settings.recovery_s
        while (liveness_fault := self.liveness_fault()) is not None:
            if liveness_fault[0] == "hung" or time.monotonic() > until:
                return False
            time.sleep(_POLL_INTERVAL_S)
        return True

    def reproduces(
        self, frames: Sequence[Frame], fault: str, cause: str
    ) -> tuple[str | None, bool]:
        """Sends `frames` in order, but stops if `fault` occurs again.

        Returns (cause, waited) if the fault has occurred, else (None, waited). A fault of one frame
        must have the same `cause` as before; a crash or hang may have another cause. `waited` is
        True if a frame got no response, or if `fault` is a crash or hang and the broker crashed or
        hung.
        """
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
        """Sends a frame on a new connection; returns the outcome, and the fault of the broker.

        The outcome is `answered`, `closed`, `silent` or `no connection`. The fault is a pair of a
        name and a cause, such as ("malformed", cause) for an invalid response; None if there is no
        fault.
        """
        try:
            with self._connected() as connection:
                try:
                    connection.sendall(frame.data)
                    if (
                        frame.kind == "cut" and not self.contexts.enabled
                    ):  # TLS cannot close a single direction
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
            self.endpoint,
            self.contexts,
            self.sasl,
            timeout_s=limits.alive_s,
            most=limits.max_answer_bytes,
        )

    def _frame(self, connection: socket.socket, timeout_s: float) -> bytes | None:
        return read_frame(connection, timeout_s, self.settings.max_answer_bytes)

    def _wrong(self, frame: Frame, answer: bytes) -> tuple[str, str] | None:
        """Returns ("malformed", cause) if `answer` is an invalid response to `frame`, else None.

        Also returns None if the frame is too broken to have a certain response.
        """
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
                return None  # UNSUPPORTED_VERSION (35) has the layout of version 0 (KIP-511)
            if _as_kafka_reads(MessageVersion(cls._definition().name, frame.version), answer[at:]):
                return None  # valid for Kafka, such as a topic name that is not UTF-8
            return "malformed", f"{cls.__name__}: {error.reason}"
        return None


def _expected(frame: Frame) -> type[Message] | None:
    """Returns the class of the response to a frame; None if the frame is too broken to have one."""
    if frame.correlation_id is None or frame.api_key is None or frame.version is None:
        return None
    cls = response_class(frame.api_key)
    return cls if cls is not None and frame.version in cls.VALID_VERSIONS else None


def _as_kafka_reads(message_version: MessageVersion, data: bytes) -> bool:
    """Returns True if Kafka's classes, which are more lenient than kproto, read the bytes."""
    try:
        walk_message(message_version.shape, data)
    except (UnreadableMessageError, RecursionError):
        return False
    return True
