"""Tests `kproto capture`: it lists, sums up and opens the messages of recordings and captures."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.messages import SaslAuthenticateRequest, SaslAuthenticateResponse
from kproto.study.conversations import Side
from kproto.study.recording import Recorder, RecordingEntry
from tests.support.environment import ROOT
from tests.unit.study.packets import connection, file_of
from tests.unit.study.talk import STEPS, Step, frames

LOGIN: Step = (
    SaslAuthenticateRequest(auth_bytes=b"\0me\0tops3cret"),
    SaslAuthenticateResponse(auth_bytes=b""),
    2,
)


@pytest.fixture(params=["recording", "pcap", "pcapng"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Returns the path of a conversation's file, in each of the file formats."""
    path = tmp_path / "file"
    pairs = frames([*STEPS, LOGIN])
    if request.param == "recording":
        out = io.BytesIO()
        recorder = Recorder(out)
        recorder.write(RecordingEntry(1, 1, client="10.0.0.1:50000", target="10.0.0.2:9092"))
        for number, (asked, answer) in enumerate(pairs):
            recorder.write(RecordingEntry(number * 1000, 1, Side.CLIENT, asked))
            recorder.write(RecordingEntry(number * 1000 + 500, 1, Side.BROKER, answer))
        path.write_bytes(out.getvalue())
    else:
        path.write_bytes(file_of(connection(pairs, size=1000), form=request.param))
    return str(path)


def test_the_list(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", file]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    apis = ["ApiVersions v3", "Metadata v12", "Produce v9", "Fetch v12", "SaslAuthenticate v2"]
    for number, (line, api) in enumerate(zip(lines, apis, strict=True), 1):
        assert line.split()[0] == str(number)
        assert f" #1 10.0.0.1:50000 {api} client='me' " in line
        assert " ms" in line
    assert "NOT_LEADER_OR_FOLLOWER" in lines[2]
    assert shown.err == ""
    assert main(["capture", file, "--json", "--api", "Fetch", "--client-id", "m?"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["number"], told["api"], told["version"]) == (4, "Fetch", 12)
    assert told["errors"] == {"OFFSET_OUT_OF_RANGE": 2}


def test_the_sums(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", file, "--stats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["API", "versions", "count"]
    (fetch,) = [line for line in lines if line.startswith("Fetch ")]
    assert fetch.split()[:3] == ["Fetch", "12", "1"]
    assert lines[6:] == [
        "",
        "client software  version  connections",
        "t                1                  1",
    ]
    assert main(["capture", file, "--stats", "--json"]) == 0
    sums = json.loads(capsys.readouterr().out)
    assert sums["Produce"]["count"] == 1
    assert sums["Fetch"]["versions"] == {"12": 1}
    assert sums["client_software"] == [{"name": "t", "version": "1", "connections": 1}]
    assert sums["Produce"]["errors"] == {"NOT_LEADER_OR_FOLLOWER": 1}
    assert sums["Produce"]["p50_us"] == sums["Produce"]["p99_us"] > 0


def test_one_line_is_opened_without_its_secrets(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", file, "--open", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["response"]["brokers"] == [{"nodeId": 1, "host": "b1", "port": 9092, "rack": None}]
    assert main(["capture", file, "--open", "5"]) == 0
    shown = capsys.readouterr().out
    assert "auth_bytes" in shown.lower().replace("authbytes", "auth_bytes")
    assert "tops3cret" not in shown
    assert b"tops3cret".hex() not in shown.replace(" ", "")
    assert main(["capture", file, "--open", "5", "--show-secrets", "--json"]) == 0
    token = json.loads(capsys.readouterr().out)["request"]["authBytes"]
    assert token == "AG1lAHRvcHMzY3JldA=="
    assert main(["capture", file, "--open", "6"]) == 1
    assert "there is no line 6 in" in capsys.readouterr().err


@pytest.mark.slow
def test_from_standard_input_into_a_closed_pipe(file: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "kproto", "capture", "-"]
    with Path(file).open("rb") as given:
        done = subprocess.run(
            ["/bin/sh", "-c", '"$@" | head -n 1', "sh", *command],
            stdin=given,
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            text=True,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "ApiVersions" in done.stdout


def test_skipped_packets_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    http = connection([(b"GET / HTTP/1.1\r\n\r\n", b"")], broker=("10.0.0.9", 80))
    path.write_bytes(file_of([*connection(frames()), *http])[:-5])
    assert main(["capture", str(path)]) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("kproto: the capture ends early: packet ")
    assert err[1] == "kproto: connections without any Kafka request: 1"


def test_packets_in_part_other_ports_and_missing_bytes_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    segments = connection(frames(times=3), size=50)
    whole = file_of(segments, form="pcap")
    path.write_bytes(whole)
    assert main(["capture", str(path), "--port", "1"]) == 0
    shown = capsys.readouterr()
    said = f"packets of other ports than --port, which were skipped: {len(segments)}"
    assert (shown.out, shown.err) == ("", f"kproto: {said}\n")
    short = bytearray(whole[:24])
    at = 24
    while at < len(whole):
        (size,) = struct.unpack_from("<I", whole, at + 8)
        short += whole[at : at + 8] + struct.pack("<II", 40, size) + whole[at + 16 : at + 56]
        at += 16 + size
    path.write_bytes(short)
    assert main(["capture", str(path)]) == 0
    assert f"captured in part (tcpdump -s 0 avoids it): {len(segments)}" in (
        capsys.readouterr().err
    )
    path.write_bytes(file_of([*segments[:8], *segments[9:]], form="pcap"))
    assert main(["capture", str(path), "--stats"]) == 0
    assert " at 2 places, were not captured, or were skipped up to the next frame" in (
        capsys.readouterr().err
    )


def test_sums_of_what_can_be_read_of_a_broken_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.BytesIO()
    recorder = Recorder(out)
    for asked, answer in frames():
        recorder.write(RecordingEntry(0, 1, Side.CLIENT, asked))
        recorder.write(RecordingEntry(1, 1, Side.BROKER, answer))
    path = tmp_path / "file"
    path.write_bytes(out.getvalue() + b"no JSON\n")
    assert main(["capture", str(path), "--stats"]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 8
    assert "line 10 of the recording: it is no JSON object" in shown.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.slow
def test_an_output_that_is_full_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(file_of(connection(frames()), form="pcap"))
    for options in ([], ["--stats"], ["--open", "1"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "kproto", "capture", str(path), *options],
                stdout=full,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                check=False,
                text=True,
            )
        said = "kproto: error: the output cannot be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.slow
def test_an_output_of_few_letters(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(file_of(connection(frames()), form="pcap"))
    done = subprocess.run(
        [sys.executable, "-m", "kproto", "capture", str(path), "--stats"],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "OFFSET_OUT_OF_RANGE\\xd72" in done.stdout


def test_cut_last_line_of_a_recording_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.BytesIO()
    Recorder(out).write(RecordingEntry(1, 1, Side.CLIENT, b"bytes"))
    path = tmp_path / "file"
    path.write_bytes(out.getvalue()[:-5])
    assert main(["capture", str(path)]) == 0
    assert "line 2 is not whole; all before it was read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "arguments", "reason"),
    [
        (b"hello", [], "is neither a recording of kproto proxy nor a pcap or pcapng file"),
        (b"", [], "is neither a recording of kproto proxy nor a pcap or pcapng file"),
        (b'{"kproto_recording": 1}\n[]\n', [], "line 2 of the recording"),
        (b"", ["--port", "0"], "--port is 0"),
        (b"", ["--open", "0"], "--open is 0"),
        (b"", ["--open", "1", "--stats"], "--stats has no effect with --open"),
        (b"", ["--open", "1", "--api", "Fetch"], "--api has no effect with --open"),
        (b"", ["--open", "1", "--client-id", "a"], "--client-id has no effect with --open"),
        (b"", ["--show-secrets"], "--show-secrets needs --open N"),
        (b'{"kproto_recording": 1}\n', ["--port", "9092"], "the file is a recording"),
        (
            b'{"kproto_recording": 1}\n{"us": 1, "c": 1, "cleint": "AA=="}\n',
            [],
            "line 2 of the recording: it has the unknown key 'cleint'",
        ),
        (b'{"kproto_recording": 1}\n{"us": 1, "c": 1}\n', [], "it has no content"),
        (b'{"kproto_recording": 1}\n', ["--api", "Fech"], "do you mean Fetch?"),
    ],
)
def test_errors_are_one_line(
    content: bytes,
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["capture", str(path), *arguments]) == (2 if arguments else 1)
    err = capsys.readouterr().err
    assert reason in err
    assert err.count("\n") == 1
    assert main(["capture", str(tmp_path)]) == 1
    assert "cannot read" in capsys.readouterr().err
