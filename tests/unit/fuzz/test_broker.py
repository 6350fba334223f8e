"""Tests fuzzing a broker: the embedded broker has no finding, each broken broker has one."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from kproto.broker import Broker, BrokerSettings
from kproto.cli import main
from kproto.fuzz import broker_connection
from kproto.fuzz.broker import (
    BrokerFinding,
    BrokerFuzzSettings,
    BrokerResult,
    fuzz_broker,
    replay_frames,
)
from kproto.fuzz.case import MessageVersion
from kproto.fuzz.frame_generation import CLIENT_ID, FRAME_KINDS, generate_frames
from kproto.fuzz.lenient_reader import Oddity, walk_message
from kproto.messages import ApiVersionsResponse, FetchRequest
from kproto.messages.api_versions_response import ApiVersion
from kproto.protocol.headers import encode_request_header
from kproto.wire.errors import BrokerConnectionError, ConfigurationError

QUICK = BrokerFuzzSettings(
    frames=200, rate=1000, quiet_s=0.1, alive_s=60, time_s=600, recovery_s=0.2, shrink_attempts=60
)
#: For a broker that answers or closes at once: the long wait covers pauses of the machine.
PATIENT = replace(QUICK, quiet_s=60)
#: For a broker that never answers.
IMPATIENT = replace(QUICK, alive_s=0.5)
VERSIONS = {3: range(10), 18: range(4)}


@pytest.mark.slow
async def test_nothing_is_found_in_the_embedded_broker() -> None:
    async with Broker(BrokerSettings(max_stored_bytes=10_000_000)) as broker:
        result = await asyncio.to_thread(fuzz_broker, broker.bootstrap, seed=1, settings=QUICK)
    assert result.findings == []
    assert sum(result.tried.values()) == sum(result.outcomes.values()) > 50
    assert result.outcomes["answered"] > 10
    assert set(result.tried) == set(FRAME_KINDS)


class Bad:
    """A broker that answers ApiVersions, and has one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.ill = False
        self.open: list[socket.socket] = []
        self.listener.settimeout(0.1)
        self.over = False

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except TimeoutError:
                if self.over:
                    return
                continue
            except OSError:
                return
            connection.settimeout(60)
            try:
                data = connection.recv(65536)
            except OSError:
                data = b""
            if not self.answer(connection, data):
                return

    def answer(self, connection: socket.socket, data: bytes) -> bool:
        if self.ill and self.fault == "hung":
            self.open.append(connection)
            return True
        if self.fault == "http":
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()
            return True
        head = struct.unpack_from(">ihhi", data) if len(data) >= 12 else (0, 0, 0, 0)
        if head[1:3] == (18, 0):
            body = ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=key, max_version=9) for key in (3, 18)]
            ).encode(0)
            answer = struct.pack(">i", head[3]) + body
            connection.sendall(struct.pack(">i", len(answer)) + answer)
        elif self.fault == "malformed":
            connection.sendall(struct.pack(">ii", 5, head[3]) + b"\xff")
        elif self.fault == "negative":
            connection.sendall(b"\xff\xff\xff\xff")
        elif self.fault in ("crashed", "hung"):
            self.ill = True
        crashed = self.ill and self.fault == "crashed"
        if crashed:
            self.listener.close()
        connection.close()
        return not crashed


@contextmanager
def running(broker: Bad) -> Iterator[Bad]:
    broker.thread.start()
    try:
        yield broker
    finally:
        broker.over = True
        broker.thread.join(2)
        broker.listener.close()
        for connection in broker.open:
            connection.close()


def bad(fault: str) -> AbstractContextManager[Bad]:
    return running(Bad(fault))


def fuzzed(broker: Bad, kinds: tuple[str, ...] = ("sound",)) -> BrokerResult:
    settings = IMPATIENT if broker.fault == "hung" else PATIENT
    return fuzz_broker(broker.address, settings=settings, kinds=kinds)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["crashed", "hung", "malformed", "closed"])
def test_a_broken_broker_is_found_out(fault: str) -> None:
    with bad(fault) as broker:
        result = fuzzed(broker)
    assert fault in {finding.fault for finding in result.findings}
    finding = next(it for it in result.findings if it.fault == fault)
    assert finding.frames
    assert bool(result.stopped) == (fault in ("crashed", "hung"))
    assert bool(finding.unshrunk) == (fault in ("crashed", "hung"))
    json.dumps(result.to_json())


@pytest.mark.slow
def test_a_size_that_makes_no_sense_is_told() -> None:
    with bad("negative") as broker:
        result = fuzzed(broker)
    causes = {finding.cause for finding in result.findings if finding.fault == "malformed"}
    assert "MetadataResponse: the size of the response is -1, not 0 to 16777216" in causes
    assert all(" is -1, " in cause for cause in causes)
    with bad("http") as server, pytest.raises(BrokerConnectionError, match="as text 'HTTP'"):
        fuzzed(server)


def test_an_example_can_be_sent_again() -> None:
    with bad("malformed") as broker:
        finding = fuzzed(broker).to_json()["findings"][0]
        said = replay_frames(broker.address, finding["example"], settings=PATIENT)
    assert (said[0].fault, said[0].is_harmful) == ("malformed", True)
    assert said[-1] == ("the broker is alive", None)


@pytest.mark.parametrize("fault", ["malformed", "closed"])
@pytest.mark.slow
def test_an_example_is_small_and_shows_the_same(fault: str) -> None:
    with bad(fault) as broker:
        large = fuzz_broker(broker.address, settings=PATIENT, kinds=("sound",), shrink=False)
        small = fuzzed(broker)
        assert small.findings
        for before, after in zip(large.findings, small.findings, strict=True):
            assert (before.fault, before.count, before.locations) == (
                after.fault,
                after.count,
                after.locations,
            )
            (frame,) = after.frames
            assert len(frame.data) <= min(30, len(before.frames[0].data))
            said = replay_frames(broker.address, after_json(after), settings=PATIENT)
            assert said == [
                (f"{after.fault}: {after.cause}", after.fault),
                ("the broker is alive", None),
            ]
            assert said[0].is_harmful == (not after.harmless)


def after_json(finding: BrokerFinding) -> object:
    result = BrokerResult("", 0, findings=[finding])
    return result.to_json()["findings"][0]["example"]


class Restarted(Bad):
    """A broker that stops when it receives a frame with an API key above 99.

    The broker starts again as soon as a client has failed to connect.
    """

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.missed = threading.Event()

    def answer(self, connection: socket.socket, data: bytes) -> bool:
        if len(data) >= 6 and struct.unpack_from(">h", data, 4)[0] > 99:
            address = self.listener.getsockname()
            self.missed.clear()
            self.listener.close()
            connection.close()
            self.missed.wait(60)
            self.listener = socket.create_server(address)
            self.listener.settimeout(0.1)
            return True
        return super().answer(connection, data)


@pytest.mark.slow
def test_a_crash_is_made_small_where_the_broker_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(*given: Any, **named: Any) -> socket.socket:
        try:
            return broker_connection.connect(*given, **named)
        except ConnectionRefusedError:
            broker.missed.set()
            raise

    monkeypatch.setattr("kproto.fuzz.broker.connect", connect)
    settings = replace(PATIENT, recovery_s=60, shrink_waits=40, check_every=5)
    broker = Restarted("none")
    with running(broker):
        result = fuzz_broker(broker.address, settings=settings, kinds=("sound", "unknown"))
    (finding,) = (it for it in result.findings if it.fault == "crashed")
    (frame,) = finding.frames
    assert finding.unshrunk == ""
    assert len(frame.data) <= 12
    assert struct.unpack_from(">h", frame.data, 4)[0] > 99


def test_crash_during_shrinking_is_a_finding_of_its_own() -> None:
    class Fragile(Bad):
        """Closes the connection at the first Metadata request, and stops at the second one."""

        seen = 0

        def answer(self, connection: socket.socket, data: bytes) -> bool:
            head = struct.unpack_from(">ihhi", data) if len(data) >= 12 else (0, 0, 0, 0)
            if head[1] != 3:
                return super().answer(connection, data)
            self.seen += 1
            if self.seen > 1:
                self.listener.close()
            connection.close()
            return self.seen < 2

    settings = replace(PATIENT, frames=1)
    with running(Fragile("none")) as broker:
        result = fuzz_broker(broker.address, settings=settings, kinds=("sound",), seed=1)
    assert [it.fault for it in result.findings] == ["closed", "crashed"]


def test_valid_requests_have_explicit_defaults_of_tagged_fields() -> None:
    fetch = MessageVersion("FetchRequest", 17)
    header = len(encode_request_header(FetchRequest, 17, 1, CLIENT_ID))
    kinds = [
        Oddity.DEFAULT in walk_message(fetch.shape, frame.data[4 + header :]).oddities
        for frame in islice(generate_frames({1: range(17, 18)}, 0, ("sound",)), 40)
    ]
    assert 5 < sum(kinds) < 35


def test_frames_are_the_same_for_a_seed() -> None:
    kinds = tuple(FRAME_KINDS)
    first, again, other = (
        list(islice(generate_frames(VERSIONS, it, kinds), 80)) for it in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "must be HOST:PORT"),
        (["127.0.0.1:x"], "must be HOST:PORT"),
        (["192.0.2.1:9092"], "is not on this machine"),
        (["192.0.2.1:9092", "--not-loopback"], "vice versa"),
        (["127.0.0.1:1"], "does not answer ApiVersions"),
        (["a..b:9092"], "a..b:9092: cannot be found"),
        (["a..b:9092", "--not-loopback", "--it-may-break"], "does not answer ApiVersions"),
        (["127.0.0.1:1", "--rate", "0"], "rate is 0"),
        (["127.0.0.1:1", "--kinds", "x"], "--kinds is 'x'"),
        (["127.0.0.1:1", "--messages", "Metadata"], "--messages needs --command"),
        (["127.0.0.1:1", "--versions", "1"], "--versions needs --command"),
        (["127.0.0.1:1", "--replay", "{}"], "frames to replay"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_wrong = "answer" not in said and "found" not in said
    assert main(["fuzz", "--broker", *arguments]) == (2 if is_wrong else 1)
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_the_command_reports(capsys: pytest.CaptureFixture[str]) -> None:
    with bad("malformed") as broker:
        few = ["--cases", "5", "--kinds", "sound"]
        assert main(["fuzz", "--broker", broker.address, *few]) == 1
    assert "invalid response" in capsys.readouterr().out


def test_other_machines_need_permission() -> None:
    with pytest.raises(ConfigurationError, match="--it-may-break"):
        fuzz_broker("192.0.2.1:9092")
    settings = BrokerFuzzSettings(alive_s=0.2)
    with pytest.raises(BrokerConnectionError):
        fuzz_broker("127.0.0.1:1", settings=settings, allow_remote=True)


async def test_ctrl_c_leaves_what_was_found() -> None:
    def interrupt(done: int, _total: int) -> None:
        if done == 30:
            raise KeyboardInterrupt

    async with Broker(BrokerSettings(max_stored_bytes=10_000_000)) as broker:
        result = await asyncio.to_thread(
            fuzz_broker, broker.bootstrap, settings=QUICK, progress=interrupt
        )
    assert result.interrupted
    assert result.to_json()["stopped"] == "interrupted"
    assert result.to_json()["cases"] == 30
