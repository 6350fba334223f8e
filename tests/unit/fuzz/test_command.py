"""Tests `kproto fuzz` as a command: reports, replays, exit codes, errors of one line."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from kproto.cli import main, run_fuzz
from kproto.fuzz.case import Answer, Case, Outcome
from kproto.fuzz.implementation import Implementation
from kproto.fuzz.judging import Fault, Verdict
from kproto.fuzz.settings import FuzzSettings

OURS = shlex.join([sys.executable, "-m", "kproto.fuzz.kproto_codec"])
WRONG = shlex.join([sys.executable, str(Path(__file__).with_name("wrong_implementation.py"))])
FEW = ["--judge", "kproto", "--messages", "MetadataRequest", "--cases", "60"]


def test_ours_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--command", OURS, *FEW]) == 0
    said = capsys.readouterr().out
    assert "no findings" in said
    assert "60 agreed" in said


def test_versions_may_be_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--command", OURS, *FEW, "--versions", "0-2, 9", "--json", "-"]) == 0
    (tried,) = json.loads(capsys.readouterr().out)["tried"].values()
    assert set(tried) == {"0", "1", "2", "9"}


def test_unknown_message_of_a_known_finding_is_an_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.jsonl"
    known.write_text('{"fault":"json"}\n{"fault":"json","message":"Nix"}\n')
    assert main(["fuzz", "--command", OURS, *FEW, "--known", str(known)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"kproto: error: --known: {known}: line 2: no message is called 'Nix'")


@pytest.mark.slow
def test_findings_are_reported_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = f"{WRONG} stricter"
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    where = ["--versions", "1", "--cases", "200", "--json", str(report), "--html", str(page)]
    assert main(["fuzz", "--command", wrong, *FEW, *where]) == 1
    assert "refuses what the judge accepts" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")
    (first, *_) = json.loads(report.read_text())["findings"]
    case = tmp_path / "case.json"
    case.write_text(json.dumps(first["example"]))
    whole = tmp_path / "finding.json"
    whole.write_text(json.dumps(first))
    again = ["fuzz", "--judge", "kproto", "--replay", str(case), "--command"]
    assert main([*again, wrong]) == 1
    assert "no e, please" in capsys.readouterr().out
    assert main([*again, OURS]) == 0
    of_finding = ["fuzz", "--judge", "kproto", "--replay", str(whole), "--command", wrong]
    assert main(of_finding) == 1


def test_a_harmless_case_is_told_as_such_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = [Verdict(Fault.STRICTER_ON_ODD, "odd", "")]
    refused = Answer(Outcome.REFUSED, reason="no")
    monkeypatch.setattr(
        run_fuzz, "replay", lambda *_, **__: (Answer(Outcome.DONE, b""), refused, harmless)
    )
    case = json.dumps(
        {"operation": "rewrite", "message": "MetadataRequest", "version": 1, "hex": ""}
    )
    assert main(["fuzz", "--judge", "kproto", "--command", OURS, "--replay", case]) == 0
    assert "no writer creates, odd (harmless)" in capsys.readouterr().out


def test_json_on_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--command", OURS, *FEW, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == 60


@pytest.mark.parametrize("fault", ["odd letters", "no numbers"])
@pytest.mark.slow
def test_any_answer_of_a_command_can_be_reported(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    where = ["--no-shrink", "--json", str(report), "--html", str(page)]
    assert main(["fuzz", "--command", f"{WRONG} '{fault}'", *FEW, *where]) == 1
    said = capsys.readouterr().out
    assert all(each.isprintable() for each in said.replace("\n", ""))
    assert "\x1b" not in page.read_text()
    constants: list[str] = []
    assert json.loads(report.read_text(), parse_constant=constants.append)["findings"]
    assert constants == []


@pytest.mark.slow
def test_an_error_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--judge", "kproto", "--messages", "MetadataRequest"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            run_fuzz, "FuzzSettings", partial(FuzzSettings, max_garbage=3, max_silent_starts=1)
        )
        assert main(["fuzz", "--command", f"{WRONG} 'odd chatter'", *few]) == 1
    said = capsys.readouterr().err
    assert r"it wrote 4 lines such as a line that is no JSON: \x1b[2J" in said


@pytest.mark.slow
def test_ctrl_c_leaves_the_report_of_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    respond = Implementation.respond
    lots: list[int] = []

    def interrupted(self: Implementation, cases: Sequence[Case]) -> list[Answer]:
        lots.append(len(cases))
        if len(lots) > 1:
            raise KeyboardInterrupt
        return respond(self, cases)

    monkeypatch.setattr(Implementation, "respond", interrupted)
    path = tmp_path / "report.json"
    many = ["--judge", "kproto", "--messages", "MetadataRequest", "--cases", "600"]
    wrong = ["--command", f"{WRONG} looser", "--kinds", "cut", "--no-shrink"]
    assert main(["fuzz", *wrong, *many, "--json", str(path)]) == 130
    assert "stopped early: interrupted" in capsys.readouterr().out
    node = json.loads(path.read_text())
    assert node["cases"] == lots[0] < 600
    assert node["findings"]


@pytest.mark.parametrize(
    "called", ["Heartbeat", "heartbeat", "12", "HEARTBEATREQUEST,heartbeatresponse"]
)
def test_messages_by_the_name_of_their_api(called: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--judge", "kproto", "--cases", "20", "--no-shrink", "--json", "-"]
    assert main(["fuzz", "--command", OURS, "--messages", called, *few]) == 0
    tried = json.loads(capsys.readouterr().out)["tried"]
    assert set(tried) == {"HeartbeatRequest", "HeartbeatResponse"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--command", ""], "command is empty"),
        (["--command", "/no/such/program", *FEW], "cannot run"),
        (["--command", OURS, "--cases", "0"], "--cases is 0"),
        (["--command", OURS, "--time", "0"], "--time is 0"),
        (["--command", OURS, "--timeout", "-1"], "--timeout is -1: it must be above 0 seconds"),
        (["--command", OURS, "--timeout", "nan"], "--timeout is nan"),
        (["--command", OURS, "--messages", "Nonsense"], "no message is called 'Nonsense'"),
        (["--command", OURS, "--messages", "Hartbeat"], "the nearest: HeartbeatRe"),
        (["--command", OURS, "--messages", ","], "must name messages or APIs"),
        (["--command", OURS, "--versions", "x"], "--versions is 'x'"),
        (["--command", OURS, "--versions", "2-1"], "--versions is '2-1'"),
        (["--command", OURS, "--versions", "99"], "no selected message has these versions"),
        (["--command", OURS, "--kinds", "x"], "--kinds is 'x'"),
        (["--command", OURS, "--replay", "{"], "this is no JSON"),
        (["--command", OURS, "--replay", "/no/such/file"], "cannot read"),
        (["--command", OURS, "--replay", '{"findings":[]}'], "this is a whole report"),
        (["--command", OURS, "--replay", "[]"], "a case is a JSON object"),
        (["--command", OURS, "--replay", "{}", "--cases", "5"], "--cases cannot be used with --re"),
        (["--command", OURS, "--rate", "5"], "--rate needs --broker"),
        (["--command", OURS, "--it-may-break"], "--it-may-break needs --broker"),
        (["--broker", "127.0.0.1:1"], "--judge needs --command"),
        (["--command", OURS, *FEW, "--json", "/no/such/folder/x"], "cannot write"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 1 if said in ("cannot run", "cannot read", "cannot write") else 2
    assert main(["fuzz", "--judge", "kproto", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("kproto: error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.slow
def test_without_hypothesis_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert main(["fuzz", "--command", OURS, *FEW]) == 2
    assert "kproto[testing]" in capsys.readouterr().err
    assert main(["fuzz", "--command", OURS, *FEW, "--no-shrink"]) == 0
