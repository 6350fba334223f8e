"""The package: its public names, and that it needs the standard library alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import kproto_cloudevents
import pytest

from tests.support.pages import page_text

PACKAGE = Path(kproto_cloudevents.__file__).parent


#: What each of these modules may import, inside its functions: others never load it.
LAZY = {
    "avro_format.py": "fastavro",
    "protobuf_format.py": "google",
    "official_sdk.py": "cloudevents",
}


def test_every_public_name_is_there() -> None:
    for name in kproto_cloudevents.__all__:
        assert getattr(kproto_cloudevents, name) is not None
    assert sorted(kproto_cloudevents.__all__, key=lambda name: (not name.isupper(), name)) == (
        sorted(set(kproto_cloudevents.__all__), key=lambda name: (not name.isupper(), name))
    )


def test_only_the_standard_library_is_imported() -> None:
    for path in PACKAGE.rglob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        at_once = set(module.body)
        for node in ast.walk(module):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                lazy = node not in at_once and top == LAZY.get(path.name)
                assert lazy or top in sys.stdlib_module_names, f"{path.name}: {name}"


def test_importing_it_loads_little() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import kproto_cloudevents; "
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(PACKAGE.parent)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    heavy = {"asyncio", "dataclasses", "inspect", "socket", "ipaddress", "kproto", "base64"}
    assert not heavy & set(loaded)


def test_the_first_program_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    opening = page_text("docs/cloudevents.md").partition("## Reading")[0]
    lines = [line[4:] for line in opening.splitlines() if not line or line.startswith("    ")]
    exec("\n".join(lines), {})
    assert capsys.readouterr().out == "order.placed {'total': 12}\n"
