"""Tests `kproto consume` whose reader is slow, as a pager is."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time

import pytest

from kproto.cli.output import PieceWriter, whole_pieces
from tests.support.cli_process import complaints
from tests.support.cli_runs import Run
from tests.support.embedded import ThreadedBroker
from tests.support.environment import ROOT

#: More bytes than a pipe holds.
LINES = [b"%06d %s\n" % (number, b"x" * 90) for number in range(5_000)]


@pytest.mark.parametrize(
    ("size", "count"), [(0, 0), (1, 0), (2, 1), (4, 1), (5, 3), (6, 4), (9, 4)]
)
def test_pieces_count_when_they_are_whole(size: int, count: int) -> None:
    assert whole_pieces([b"ab", b"cde", b"", b"f"], size) == count


def pipe_as_output(monkeypatch: pytest.MonkeyPatch) -> int:
    """Makes standard output a pipe; returns the end that reads it."""
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", os.fdopen(writer, "w"))
    return reader


async def test_event_loop_runs_while_a_pipe_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipe_as_output(monkeypatch)
    writer = PieceWriter()
    writing = asyncio.ensure_future(writer.write(LINES))
    with os.fdopen(pipe, "rb") as reader:
        while unread(pipe) < os.fpathconf(pipe, "PC_PIPE_BUF"):  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0)
        assert not writing.done()
        reading = asyncio.get_running_loop().run_in_executor(None, reader.read)
        await writing
        sys.stdout.close()
        assert await reading == b"".join(LINES)
    assert writer.count == len(LINES)


async def test_cancelled_write_knows_its_whole_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = pipe_as_output(monkeypatch)
    writer = PieceWriter()
    writing = asyncio.ensure_future(writer.write(LINES))
    while not unread(pipe):  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    sys.stdout.close()
    with os.fdopen(pipe, "rb") as reader:
        assert reader.read().count(b"\n") == writer.count < len(LINES)


def unread(pipe: int) -> int:
    """Returns the number of bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), sys.byteorder)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_member_with_a_slow_reader_ends_and_commits_what_it_wrote(
    served: ThreadedBroker, kproto: Run, topic: str, number: signal.Signals, code: int
) -> None:
    group = f"slow-{topic}-{code}"
    kproto("produce", topic, "-p", "0", stdin=b"".join(LINES))
    words = ["consume", topic, "-g", group, "--from-beginning", "-b", served.bootstrap]
    with subprocess.Popen(
        [sys.executable, "-m", "kproto", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        until_it_stays(process)
        process.send_signal(number)
        killed = threading.Timer(60, process.kill)  # a command that hangs fails the test
        killed.start()
        assert process.wait() == code
        killed.cancel()
        written = process.stdout.read()
        assert complaints(process.stderr.read().decode()) == []
    count = written.count(b"\n")
    assert 0 < count < len(LINES)
    assert b"".join(LINES).startswith(written)
    lag = kproto("groups", "lag", group, "--csv").lines()
    assert lag[1].split(",")[:4] == [group, topic, "0", str(count)]


@pytest.mark.parametrize("format_options", [[], ["--json"]])
def test_consumer_without_a_group_ends_at_a_signal_if_its_reader_is_slow(
    served: ThreadedBroker, kproto: Run, topic: str, format_options: list[str]
) -> None:
    """Before, it blocked in a write, and ended when its reader read or closed the pipe."""
    kproto("produce", topic, "-p", "0", stdin=b"".join(LINES))
    words = ["consume", topic, "--from-beginning", "-b", served.bootstrap, *format_options]
    with subprocess.Popen(
        [sys.executable, "-m", "kproto", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        until_it_stays(process)
        process.send_signal(signal.SIGTERM)
        killed = threading.Timer(60, process.kill)  # a command that hangs fails the test
        killed.start()
        assert process.wait() == 143
        killed.cancel()
        assert process.stderr is not None
        assert complaints(process.stderr.read().decode()) == []


def until_it_stays(process: subprocess.Popen[bytes]) -> None:
    """Waits until the output of a process has bytes, and takes no more."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    before = -1
    while process.poll() is None and (not unread(pipe) or unread(pipe) != before):
        before = unread(pipe)
        time.sleep(0.2)
