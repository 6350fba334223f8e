"""Tests `kproto fuzz --package`: compares a command with the codec of a user's package."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from kproto.cli import main
from tests.unit.fuzz.own_package import make_package

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
    assert len(example["hex"]) == 2 * 8  # the field Loudness, and no Words
    again = ["fuzz", "--package", PACKAGE, "--replay", json.dumps(example), "--command"]
    assert main([*again, wrong]) == 1
    assert "too loud" in capsys.readouterr().out
    assert main([*again, RIGHT]) == 0


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
