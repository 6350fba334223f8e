"""Tests `kproto proxy` as a process: its output, its recording, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.cli.proxy import _MAX_RECORDED_BYTES
from kproto.cli.run_proxy import LineWriter
from kproto.messages import MetadataRequest, SaslAuthenticateRequest
from kproto.study.recording import DEFAULT_MAX_RECORDED_BYTES, read_recording
from tests.support.cli_process import complaints, started
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

TIMEOUT_S = 120


@contextlib.contextmanager
def running(target: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with started("proxy", "127.0.0.1:0", target, *arguments) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline()


def test_it_logs_and_records_until_ctrl_c_and_hides_secrets(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    with threaded_broker() as broker:
        arguments = ("--json", "--record", str(path), "--api", "Metadata,36")
        with running(broker.bootstrap, *arguments) as (process, first):
            address = json.loads(first)["notice"].split()[-1]
            assert json.loads(first)["notice"].startswith(f"kproto proxy for {broker.bootstrap}")
            with RawConnection(address) as connection:
                connection.exchange(MetadataRequest(topics=[]), 12)
                with contextlib.suppress(ClosedByBrokerError):
                    connection.exchange(SaslAuthenticateRequest(auth_bytes=b"tops3cret"), 2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, complaints(err)) == (0, [])
    told = [json.loads(line) for line in out.splitlines()]
    shown = [(line["from"], line["api"]) for line in told if "api" in line]
    assert shown[:3] == [
        ("client", "Metadata"),
        ("broker", "Metadata"),
        ("client", "SaslAuthenticate"),
    ]
    with path.open("rb") as file:
        entries = list(read_recording(file))
    recorded = b"".join(entry.data for entry in entries)
    assert b"tops3cret" not in recorded
    assert b"*" * 9 in recorded
    assert DEFAULT_MAX_RECORDED_BYTES == _MAX_RECORDED_BYTES


@pytest.mark.slow
def test_it_ends_when_nobody_reads_what_it_prints() -> None:
    with threaded_broker() as broker, running(broker.bootstrap) as (process, first):
        assert process.stdout is not None
        process.stdout.close()
        with contextlib.suppress(ClosedByBrokerError), RawConnection(first.split()[-1]) as opened:
            opened.exchange(MetadataRequest(topics=[]), 12)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stderr is not None
        assert complaints(process.stderr.read()) == []


@pytest.mark.slow
def test_a_log_that_no_longer_fits_is_told_and_the_proxy_goes_on(tmp_path: Path) -> None:
    limited = ("/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh")
    arguments = ("proxy", "127.0.0.1:0")
    with (
        threaded_broker() as broker,
        (tmp_path / "log").open("wb") as log,
        started(*arguments, broker.bootstrap, options=(), before=limited, stdout=log) as process,
    ):
        with RawConnection(told_address(tmp_path / "log")) as connection:
            for _ in range(20):
                connection.exchange(MetadataRequest(topics=[]), 12)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert complaints(err) == ["kproto: the log ends: File too large; the proxy continues"]


@pytest.mark.slow
def test_a_log_that_nobody_reads_stops_no_client() -> None:
    with threaded_broker() as broker, running(broker.bootstrap) as (process, first):
        with RawConnection(first.split()[-1]) as connection:
            for _ in range(1500):  # the log is larger than a pipe's buffer
                connection.exchange(MetadataRequest(topics=[]), 12)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, complaints(err)) == (0, [])
    assert out.count(" <- Metadata v12 ") == 1500


def _no_loss(error: OSError) -> None:
    raise error


def test_lines_that_do_not_fit_are_counted_where_they_are_missing() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "wb", buffering=0) as written:
        left_out = "{} left out".format
        fileno = written.fileno()
        log = LineWriter(fileno, left_out, _no_loss, max_lines=100, close_timeout_s=TIMEOUT_S)
        for number in range(1000):
            log.put(f"{number} {'x' * 1000}")
        lines: list[bytes] = []
        thread = threading.Thread(target=lambda: lines.extend(read))
        thread.start()
        log.close()
        written.close()
        thread.join(TIMEOUT_S)
    next_number = gaps = 0
    for line in lines:
        first, _, rest = line.partition(b" ")
        if rest == b"left out\n":
            next_number += int(first)
            gaps += 1
        else:
            assert (int(first), rest) == (next_number, b"x" * 1000 + b"\n")
            next_number += 1
    assert next_number == 1000
    assert gaps  # several, if the printing thread started late


def test_a_log_that_nobody_reads_ends_all_the_same() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as written:
        lost: list[OSError] = []  # `on_lost` is called when the pipe closes below
        log = LineWriter(written.fileno(), str, lost.append, close_timeout_s=0.05)
        for _ in range(200):
            log.put("x" * 1000)
        log.close()


def told_address(log: Path) -> str:
    """Returns the proxy's address from the first line of its log."""
    end = time.monotonic() + TIMEOUT_S
    while not (lines := log.read_text().splitlines(keepends=True)) or not lines[0].endswith("\n"):
        assert time.monotonic() < end, "the proxy does not say where it listens"
        time.sleep(0.01)
    return lines[0].split()[-1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["x", "y:1"], "'x' is no address"),
        (["x:1", "y:1", "--api", "Fech"], "no definition has the API 'Fech'; do you mean Fetch?"),
        (["x:1", "y:1", "--record", "/no/such/file"], "cannot record to /no/such/file"),
        (["x:1", "y:1", "--record", "/dev/full"], "cannot record to /dev/full: No space left"),
        (["0.0.0.0:0", "y:1", "--rewrite"], "--advertised-host"),
        (["x:1", "y:1", "--first-broker-port", "70000"], "first_broker_port is 70000"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_wrong = "--record" not in arguments
    assert main(["proxy", *arguments]) == (2 if is_wrong else 1)
    err = capsys.readouterr().err
    assert err.startswith("kproto: error: ")
    assert reason in err
    assert err.count("\n") == 1
