"""`kproto proxy` as a process: what it prints and records, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.cli.proxy import _MAX_RECORDED_BYTES
from kproto.messages import MetadataRequest, SaslAuthenticateRequest
from kproto.study.recording import DEFAULT_MAX_RECORDED_BYTES, read_recording
from tests.support.embedded import threaded_broker
from tests.support.environment import ROOT
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

TIMEOUT_S = 30


@contextlib.contextmanager
def running(target: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "kproto", "proxy", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, target, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def complaints(err: str) -> list[str]:
    """Lines of standard error, but for those in which asyncio's debug mode calls a machine slow."""
    slow = re.compile(r"Executing <.*> took \d+\.\d+ seconds")
    return [line for line in err.splitlines() if not slow.fullmatch(line)]


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


def test_it_ends_when_nobody_reads_what_it_prints() -> None:
    with threaded_broker() as broker, running(broker.bootstrap) as (process, first):
        assert process.stdout is not None
        process.stdout.close()
        with contextlib.suppress(ClosedByBrokerError), RawConnection(first.split()[-1]) as opened:
            opened.exchange(MetadataRequest(topics=[]), 12)
        assert process.wait(TIMEOUT_S) == 0
        assert process.stderr is not None
        assert complaints(process.stderr.read()) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["x", "y:1"], "'x' is no address"),
        (["x:1", "y:1", "--api", "Fech"], "'Fech' is no API that the definitions know; Fetch is"),
        (["x:1", "y:1", "--record", "/no/such/file"], "cannot record to /no/such/file"),
        (["0.0.0.0:0", "y:1", "--rewrite"], "--advertised-host"),
        (["x:1", "y:1", "--first-broker-port", "70000"], "first_broker_port is 70000"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["proxy", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("kproto: error: ")
    assert reason in err
    assert err.count("\n") == 1
