"""Tests `kproto decode`: its input, its exit codes and its output."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.messages import MetadataRequest, SaslAuthenticateRequest
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from kproto.records import encode_batch
from kproto.study import annotate_frame, to_json, to_text
from tests.support.environment import ROOT

FRAME = frame(
    encode_request_header(MetadataRequest, 9, 7, "me"), MetadataRequest(topics=None).encode(9)
)


def lines(data: bytes, width: int) -> str:
    return "".join(f"{line}\n" for line in to_text(annotate_frame(data), width=width))


def test_a_request_as_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", FRAME.hex(" "), "--width", "100"]) == 0
    assert capsys.readouterr().out == lines(FRAME, 100)


def test_a_file_and_stdin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "frame"
    path.write_bytes(FRAME)
    assert main(["decode", "--file", str(path), "--width", "50"]) == 0
    assert capsys.readouterr().out == lines(FRAME, 50)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FRAME)))
    assert main(["decode", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [to_json(annotate_frame(FRAME))]


def test_a_file_named_dash_is_stdin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FRAME)))
    assert main(["decode", "--file", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [to_json(annotate_frame(FRAME))]


@pytest.mark.parametrize("mark", ["\u200b", "\f", "\udce9", "\x1b"])
def test_argument_with_an_invisible_character_is_refused(
    mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decode", f"00 12{mark}00 03"]) != 0
    assert "line 1, column 6: " in capsys.readouterr().err


def test_broken_bytes_are_printed_up_to_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    broken = frame(FRAME[4:-2])
    assert main(["decode", broken.hex(), "--width", "120"]) == 1
    out, err = capsys.readouterr()
    assert "FAULT at byte" in out
    assert err == (
        "kproto: error: MetadataRequest v9, field include_topic_authorized_operations, "
        f"at byte {len(broken)}: 1 byte is needed and 0 are left\n"
    )


def test_a_body_a_guess_and_records(capsys: pytest.CaptureFixture[str]) -> None:
    body = MetadataRequest(topics=None).encode(9)
    assert main(["decode", "--message", "metadata", "--version", "9", body.hex()]) == 0
    assert "allow_auto_topic_creation" in capsys.readouterr().out
    assert main(["decode", "--guess", FRAME.hex()]) == 0
    assert capsys.readouterr().out.startswith(" 1. MetadataRequest v9, as a frame")
    assert main(["decode", "--guess", "--json", FRAME.hex()]) == 0
    assert json.loads(capsys.readouterr().out)[0]["versions"] == [9]
    assert main(["decode", "--records", encode_batch([(None, b"hello", (), 0)]).hex()]) == 0
    assert "'hello'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--value", "--guess", "--records-of", "__consumer_offsets"],
            "--guess has no effect with",
        ),
        (["--records", "--guess"], "--guess has no effect with --records: omit one of them"),
        (["--records", "--message", "Fetch"], "--message has no effect with --records"),
        (["--guess", "--part", "frame"], "--part has no effect with --guess"),
        (
            ["--key", "--records-of", "__consumer_offsets", "--version", "1"],
            "--version has no effect with --key",
        ),
        (["--version", "1"], "--version needs --message"),
        (["--file", "x"], "pass BYTES or --file, not both"),
        (["--key"], "--key needs the topic of the record: --records-of TOPIC"),
        (["--value"], "--value needs the topic of the record: --records-of TOPIC"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decode", *options, "00010001670001740000"]) == 2
    assert said in capsys.readouterr().err


def test_a_message_that_the_header_does_not_name_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["decode", "--message", "Fetch", FRAME.hex()]) == 2
    assert "the header names MetadataRequest v9, and not FetchRequest" in capsys.readouterr().err
    assert main(["decode", "--message", "Metadata", FRAME.hex()]) == 0


def test_a_guess_of_a_response_ranks_responses_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--guess", "--response", "--json", "0000000700000000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found
    assert all(each["message"].endswith("Response") for each in found)


def test_an_error_names_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--records", "00" * 40]) == 1
    assert capsys.readouterr().err.startswith("kproto: error: records, field records[0], at byte 0")


def test_secrets_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    body = SaslAuthenticateRequest(auth_bytes=b"\0me\0secret").encode(2)
    command = ["decode", "--message", "SaslAuthenticate", "--version", "2", body.hex()]
    assert main(command) == 0
    assert "secret" not in capsys.readouterr().out
    assert main([*command, "--show-secrets", "--json"]) == 0
    assert b"secret".hex() in capsys.readouterr().out


def test_at_most_so_many_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--max-nodes", "3", FRAME.hex()]) == 0
    out = capsys.readouterr().out
    assert "more, which are not shown" in out
    assert len(out.splitlines()) < len(lines(FRAME, 100).splitlines())
    assert main(["decode", "--max-nodes", "3", "--all", "--width", "100", FRAME.hex()]) == 0
    assert capsys.readouterr().out == lines(FRAME, 100)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["xyz!"], "is no hex digit"),
        ([""], "no bytes are given"),
        (["--file", "/nowhere/at/all"], "cannot be read"),
        (["--message", "Fetsch", "00"], "the nearest: FetchRequest"),
        (["--message", "Fetch", "--response", "00"], "needs a --version"),
        (["--response", "00"], "does not name its message"),
        (["--message", "Fetch", "--version", "99", "00"], "has the versions 0 to"),
        (["--max-nodes", "0", "00"], "it is 1 or more"),
        (["--width", "-5", "00"], "--width is -5: it must be 1 or more columns"),
        (["--max-input-bytes", "3", "--file", __file__], "has more than 3 bytes"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_wrong = "--file" not in arguments
    assert main(["decode", *arguments]) == (2 if is_wrong else 1)
    err = capsys.readouterr().err
    assert err.startswith("kproto: error: ")
    assert err.count("\n") == 1
    assert reason in err


@pytest.mark.parametrize("behind", [b"", frame(b"\xff" * 20)], ids=["sound", "with a fault"])
def test_a_closed_pipe_ends_it_quietly(behind: bytes) -> None:
    data = MetadataRequest(topics=None).encode(9)
    many = b"".join(
        frame(encode_request_header(MetadataRequest, 9, 7, "me"), data) for _ in range(2000)
    )
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "kproto", "decode", "--form", "binary", "--all"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(many + behind)
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0
