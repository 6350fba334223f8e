"""Tests which records `kproto produce` reports as stored when it is stopped or fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kproto.broker import Delay, ErrorCode
from kproto.messages.produce_request import ProduceRequest
from tests.support.cli_process import complaints
from tests.support.cli_runs import Run
from tests.support.embedded import ThreadedBroker
from tests.support.environment import ROOT

MAYBE = "it may have been stored, because no broker has said so"
ALL = ("--from-beginning", "--until-end")


def produce(served: ThreadedBroker, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kproto", "produce", *words, "-b", served.bootstrap],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_command_waits_for_what_it_has_read(
    served: ThreadedBroker,
    kproto: Run,
    topic: str,
    tmp_path: Path,
    number: signal.Signals,
    code: int,
) -> None:
    """Every line up to the last that was read is stored, and none is reported as undelivered."""
    path = tmp_path / "undelivered"
    with produce(served, topic, "-p", "0", "--undelivered", str(path)) as process:
        assert process.stdin is not None
        stdin = process.stdin

        def write() -> None:
            try:
                for first in range(0, 10_000_000, 1000):
                    stdin.write(b"".join(b"%d\n" % each for each in range(first, first + 1000)))
            except OSError:
                pass

        writer = threading.Thread(target=write)
        writer.start()
        served.until(lambda broker: broker.end_offset(topic) > 0)
        process.send_signal(number)
        assert process.wait(60) == code
        assert process.stderr is not None
        said = complaints(process.stderr.read().decode())
        writer.join()
        with suppress(BrokenPipeError):  # of the lines that the command has not read
            stdin.close()
    assert len(said) == 1, said
    words = "kproto: the input was read up to line "
    assert said[0].startswith(words)
    stored = kproto("consume", topic, *ALL).lines()
    assert stored == [str(each) for each in range(len(stored))]
    assert len(stored) == int(said[0].removeprefix(words).split(",")[0])
    assert path.read_bytes() == b""


def test_stopped_command_tells_records_without_an_answer(
    served: ThreadedBroker, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "undelivered"
    arrived = threading.Event()

    def hold(request: object) -> Delay:
        arrived.set()
        return Delay(3_600_000)

    control = served.call(lambda broker: broker.control(hold, request=ProduceRequest))
    try:
        options = ["--undelivered", str(path), "--flush-timeout", "100ms"]
        with produce(served, topic, *options) as process:
            assert process.stdin is not None
            process.stdin.write(b"a\n")
            process.stdin.flush()
            assert arrived.wait(60)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr is not None
            said = complaints(process.stderr.read().decode())
    finally:
        served.call(lambda broker: broker.remove_control(control))
    assert said == [
        f"kproto: 1 record was not acknowledged in all: written to {path}",
        f"kproto: {MAYBE}: sending it again may store it twice",
        "kproto: the input was read up to line 1, and not further",
    ]
    assert json.loads(path.read_bytes())["value"] == "a"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("REQUEST_TIMED_OUT", MAYBE),
        ("TOPIC_AUTHORIZATION_FAILED", "it was not stored"),
    ],
)
def test_failed_record_may_have_been_stored_or_not(
    served: ThreadedBroker, kproto: Run, topic: str, name: str, words: str
) -> None:
    fault = ErrorCode(name, times=None)
    control = served.call(lambda broker: broker.control(fault, request=ProduceRequest))
    try:
        quick = [
            "-X",
            "delivery.timeout.ms=300",
            "-X",
            "request.timeout.ms=200",
            "-X",
            "linger.ms=0",
        ]
        found = kproto("produce", topic, *quick, stdin=b"a")
    finally:
        served.call(lambda broker: broker.remove_control(control))
    assert found.code == 1
    assert any(words in line for line in found.err)
