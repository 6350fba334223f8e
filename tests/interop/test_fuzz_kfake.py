"""`kproto fuzz --broker` finds in franz-go's kfake what docs/evidence/findings.md names."""

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

#: Where kfake ends on an api key that it does not know, in the words of Go.
NIL_POINTER = "nil pointer dereference"
PLACE = "kfake.(*clientConn).read("

#: An api key that there is none of, as docs/evidence/findings.md has it.
UNKNOWN_KEY = "0000000affff000000000001ffff"

Captured = pytest.CaptureFixture[str]


class Kfake(NamedTuple):
    """A kfake that listens, and what it says."""

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
            assert process.stdout.readline()  # it says where it listens
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


def test_an_unknown_api_key_ends_it(kfake: Kfake, capsys: Captured) -> None:
    (finding,) = harmful(fuzzed(kfake, capsys, "unknown"))
    assert finding["fault"] == "crashed"
    said = kfake.errors.read_text()
    assert NIL_POINTER in said
    assert PLACE in said


def test_the_frame_of_the_documentation_ends_it(kfake: Kfake, capsys: Captured) -> None:
    assert UNKNOWN_KEY in (ROOT / "docs" / "evidence" / "findings.md").read_text()
    example = json.dumps({"frames": [{"hex": UNKNOWN_KEY}]})
    assert main(["fuzz", "--broker", kfake.address, "--replay", example]) == 1
    assert "crashed: " in capsys.readouterr().out
    assert PLACE in kfake.errors.read_text()


@pytest.mark.parametrize(
    "kind",
    [
        # Those that a broker waits with take the time that an answer is waited for, each.
        pytest.param(kind, marks=pytest.mark.exhaustive)
        if kind in ("size", "cut", "noise")
        else kind
        for kind in FRAME_KINDS
        if kind not in ("sound", "unknown")
    ],
)
def test_nothing_else_is_found(kfake: Kfake, capsys: Captured, kind: str) -> None:
    for finding in harmful(fuzzed(kfake, capsys, kind)):
        # A broken header may have an api key that it does not know.
        assert finding["fault"] == "crashed"
        assert PLACE in kfake.errors.read_text()


@pytest.mark.exhaustive
def test_billions_of_partitions_hang_it(kfake: Kfake, capsys: Captured) -> None:
    (finding,) = harmful(fuzzed(kfake, capsys, "sound", cases=1000, time=90))
    assert finding["fault"] == "hung"
    create_topics = 19
    assert create_topics in [frame["apiKey"] for frame in finding["example"]["frames"]]
    assert kfake.errors.read_text() == ""
