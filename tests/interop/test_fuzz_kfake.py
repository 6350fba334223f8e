"""Tests that `kproto fuzz --broker` finds the faults of franz-go's kfake.

docs/evidence/findings.md describes these faults.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kproto.cli import main
from kproto.fuzz.frame_generation import FRAME_KINDS
from tests.support.environment import ROOT
from tests.support.go_programs import built
from tools.setup.ports import LOOPBACK, free_ports

pytestmark = [pytest.mark.peers, pytest.mark.slow]

#: kfake's error and stack frame, as Go prints them, after an unknown api key.
NIL_POINTER = "nil pointer dereference"
STACK_FRAME = "kfake.(*clientConn).read("

#: A request with an api key that does not exist, from docs/evidence/findings.md.
UNKNOWN_KEY = "0000000affff000000000001ffff"

Captured = pytest.CaptureFixture[str]


class Kfake(NamedTuple):
    """A running kfake: its address, and the file with its standard error."""

    address: str
    errors: Path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(
        "franz-go's kfake", ROOT / "tools/fuzz_adapters/kfake", tmp_path_factory.mktemp("go")
    )


@pytest.fixture
def kfake(program: Path, tmp_path: Path) -> Iterator[Kfake]:
    with running(program, tmp_path) as found:
        yield found


@contextmanager
def running(program: Path, folder: Path) -> Iterator[Kfake]:
    (port,) = free_ports(1)
    errors = folder / "errors"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [str(program), str(port)], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline()  # kfake prints its address when it listens
            yield Kfake(f"{LOOPBACK}:{port}", errors)
        finally:
            process.kill()


def fuzzed(
    kfake: Kfake, capsys: Captured, kind: str, *, cases: int = 60, time: int = 15
) -> dict[str, Any]:
    limits = ["--cases", str(cases), "--time", str(time), "--no-shrink", "--json", "-"]
    assert main(["fuzz", "--broker", kfake.address, "--kinds", kind, *limits]) in (0, 1)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["cases"] >= 1
    return report


def harmful(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in report["findings"] if not finding["harmless"]]


def test_unknown_api_key_crashes_kfake(kfake: Kfake, capsys: Captured) -> None:
    (finding,) = harmful(fuzzed(kfake, capsys, "unknown"))
    assert finding["fault"] == "crashed"
    said = kfake.errors.read_text()
    assert NIL_POINTER in said
    assert STACK_FRAME in said


def test_documented_frame_crashes_kfake(kfake: Kfake, capsys: Captured) -> None:
    assert UNKNOWN_KEY in (ROOT / "docs" / "evidence" / "findings.md").read_text()
    example = json.dumps({"frames": [{"hex": UNKNOWN_KEY}]})
    assert main(["fuzz", "--broker", kfake.address, "--replay", example]) == 1
    assert "crashed: " in capsys.readouterr().out
    assert STACK_FRAME in kfake.errors.read_text()


@pytest.mark.parametrize(
    "kind",
    [
        # Cases of these kinds get no response, so each takes the whole timeout.
        pytest.param(kind, marks=pytest.mark.exhaustive)
        if kind in ("size", "cut", "noise")
        else kind
        for kind in FRAME_KINDS
        if kind not in ("sound", "unknown")
    ],
)
def test_other_frames_only_crash_by_unknown_api_keys(
    kfake: Kfake, capsys: Captured, kind: str
) -> None:
    for finding in harmful(fuzzed(kfake, capsys, kind)):
        # A broken header may contain an unknown api key.
        assert finding["fault"] == "crashed"
        assert STACK_FRAME in kfake.errors.read_text()


@pytest.mark.exhaustive
def test_billions_of_partitions_hang_kfake(kfake: Kfake, capsys: Captured) -> None:
    (finding,) = harmful(fuzzed(kfake, capsys, "sound", cases=1000, time=90))
    assert finding["fault"] == "hung"
    create_topics = 19
    assert create_topics in [frame["apiKey"] for frame in finding["example"]["frames"]]
    assert kfake.errors.read_text() == ""
