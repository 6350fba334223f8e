"""Tests `kproto fuzz --package` with an implementation in another language, JavaScript.

tools/fuzz_adapters/greetings.js reads and writes the messages that docs/how-to/definitions.md
defines.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.cli import main
from tests.support.availability import skip_untested
from tests.support.environment import ROOT
from tests.unit.test_own_protocol_page import prepared

ADAPTER = ROOT / "tools" / "fuzz_adapters" / "greetings.js"

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _prepared(tmp_path: Path) -> Iterator[None]:
    if shutil.which("node") is None:
        skip_untested("an implementation in JavaScript", "node is not on the PATH", "Node.js")
    with prepared(tmp_path):
        yield


def report(adapter: Path, code: int, capsys: Captured) -> Any:
    """Fuzzes an adapter; returns the report."""
    command = shlex.join(["node", str(adapter)])
    options = ["--package", "hello", "--cases", "700", "--no-shrink", "--json", "-"]
    capsys.readouterr()
    assert main(["fuzz", *options, "--command", command]) == code
    return json.loads(capsys.readouterr().out)


def test_the_adapter_has_no_fault(capsys: Captured) -> None:
    found = report(ADAPTER, 0, capsys)
    assert set(found["tried"]) == {"GreetRequest", "GreetResponse", "GreetingRecord"}
    assert found["outcomes"]["agreed"] > 500
    assert found["findings"] == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ('throw new Refused("null where it is not allowed")', 'return ""', "looser"),
        ("this.uvarint(count + 1)", "this.uvarint(count)", "bytes"),
        ("} else found.push", "} else if (tag < 9) found.push", "bytes"),
        ("taken: reader.pos", "taken: reader.pos + 1", "end"),
        ("error instanceof Refused ?", "false ?", "failed"),
    ],
)
def test_a_fault_of_the_adapter_is_found(
    right: str, wrong: str, fault: str, tmp_path: Path, capsys: Captured
) -> None:
    text = ADAPTER.read_text(encoding="utf-8")
    assert text.count(right) == 1
    faulty = tmp_path / "faulty.js"
    faulty.write_text(text.replace(right, wrong), encoding="utf-8")
    faults = {found["fault"] for found in report(faulty, 1, capsys)["findings"]}
    assert fault in faults
