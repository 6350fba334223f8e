"""Tests `kproto fuzz --package`: compares a command with the codec of a user's package."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.fuzz import kproto_codec
from kproto.fuzz.case import Answer, Case, Operation, Outcome, all_message_versions
from kproto.fuzz.judging import Fault
from kproto.fuzz.kproto_codec import KprotoCodec
from kproto.fuzz.lenient_reader import LengthUnit, Oddity, walk_message
from kproto.fuzz.run import CasePlan, run
from tests.unit.fuzz.own_package import make_package
from tests.unit.fuzz.test_one_way import Scripted

PACKAGE = "messages_for_fuzz"
RIGHT = shlex.join([sys.executable, "-m", "kproto.fuzz.kproto_codec", PACKAGE])

#: The package's codec with a fault: it refuses a request whose first byte is not zero.
WRONG = f"""
import json, sys
from kproto.fuzz import kproto_codec
import {PACKAGE}
for line in sys.stdin:
    asked = json.loads(line)
    answer = kproto_codec._answered(line, {PACKAGE})
    if asked["message"] == "ShoutRequest" and bytes.fromhex(asked.get("hex", ""))[:1] > b"\\0":
        answer = {{"id": asked["id"], "refused": "too loud"}}
    print(json.dumps(answer), flush=True)
"""

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    make_package(tmp_path, PACKAGE)
    (tmp_path / "wrong.py").write_text(WRONG)
    capsys.readouterr()
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


FUZZ = ["fuzz", "--package", PACKAGE, "--cases"]


@pytest.mark.usefixtures("_package")
@pytest.mark.slow
def test_its_own_codec_is_right(capsys: Captured) -> None:
    assert main([*FUZZ, "150", "--command", RIGHT, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["judge"] == "kproto's codec"
    assert set(report["tried"]) == {"Greeting", "ShoutRequest"}
    assert set(report["tried"]["Greeting"]) == {"0", "1"}
    assert report["outcomes"]["agreed"] > 130
    assert report["findings"] == []


@pytest.mark.usefixtures("_package")
@pytest.mark.slow
def test_a_wrong_command_is_found_made_small_and_replayed(capsys: Captured) -> None:
    wrong = shlex.join([sys.executable, "wrong.py"])
    of_shout = ["--messages", "shout", "--json", "-", "--command", wrong]
    assert main([*FUZZ, "150", *of_shout]) == 1
    report = json.loads(capsys.readouterr().out)
    assert set(report["tried"]) == {"ShoutRequest"}
    rewritten = [it for it in report["findings"] if it["operation"] == "rewrite"]
    (example,) = (it["example"] for it in rewritten if it["fault"] == "stricter")
    assert len(example["hex"]) == 2 * 12  # the field Loudness, no Words and no Guests
    again = ["fuzz", "--package", PACKAGE, "--replay", json.dumps(example), "--command"]
    assert main([*again, wrong]) == 1
    assert "too loud" in capsys.readouterr().out
    assert main([*again, RIGHT]) == 0


def _with_fault(case: Case, fault: str) -> Answer:
    """Answers as the package's codec does, except for the fault that a test has planted."""
    right = kproto_codec.answer(case)
    if isinstance(case.content, str) or right.outcome is not Outcome.DONE:
        return right
    found = walk_message(case.message_version.shape, case.content)
    counts = [each.value for each in found.length_fields if each.role is LengthUnit.COUNT]
    match fault:
        case "keeps defaults" if Oddity.DEFAULT in found.oddities:
            is_rewrite = case.operation is Operation.REWRITE
            return right._replace(value=case.content) if is_rewrite else right
        case "count above 100" if any(count > 100 for count in counts):
            return Answer(Outcome.REFUSED, reason="too many")
        case "length above 255" if any(each.value > 255 for each in found.strings):
            return Answer(Outcome.REFUSED, reason="too long")
    return right


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("none", set()),
        ("keeps defaults", {Fault.BYTES}),
        ("count above 100", {Fault.STRICTER}),
        ("length above 255", {Fault.STRICTER}),
    ],
)
def test_planted_fault_is_found_in_a_thousand_cases(fault: str, found: set[Fault]) -> None:
    package = importlib.import_module(PACKAGE)
    plan = CasePlan(all_message_versions(package), cases=1000, shrink=False)
    responder = Scripted(lambda case: _with_fault(case, fault))
    result = run(responder, KprotoCodec(), plan, by_kproto=True)
    assert {finding.verdict.fault for finding in result.findings} == found


@pytest.mark.usefixtures("_package")
@pytest.mark.slow
def test_example_with_a_long_array_becomes_small() -> None:
    package = importlib.import_module(PACKAGE)
    plan = CasePlan(all_message_versions(package), cases=1000)
    responder = Scripted(lambda case: _with_fault(case, "count above 100"))
    result = run(responder, KprotoCodec(), plan, by_kproto=True)
    for finding in result.findings:
        assert len(finding.example.content) < 1000


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--command", RIGHT, "--messages", "Metadata"], "no message is called 'Metadata'"),
        (["--command", RIGHT, "--judge", "java"], "supports only Kafka's messages"),
        (
            ["--command", RIGHT, "--replay", '{"operation":"decode","message":"FetchRequest"}'],
            "do not have",
        ),
        (["--broker", "127.0.0.1:1"], "--package needs --command"),
        (["--command", RIGHT, "--package", "no_such_package"], "cannot import"),
        (["--command", RIGHT, "--package", "json"], "is no package of messages"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_errors_are_one_line(arguments: list[str], said: str, capsys: Captured) -> None:
    assert main(["fuzz", "--package", PACKAGE, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("kproto: error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1
