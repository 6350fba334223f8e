"""Tests that the package has its public names and needs only the standard library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import kproto_cloudevents
import pytest

from tests.support.pages import page_text

PACKAGE = Path(kproto_cloudevents.__file__).parent


#: The package that each of these modules imports inside its functions; no other module loads it.
LAZY = {
    "formats/avro_format.py": "fastavro",
    "formats/protobuf_format.py": "google",
    "official_sdk.py": "cloudevents",
}


def test_every_public_name_exists() -> None:
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
                lazy = node not in at_once and top == LAZY.get(path.relative_to(PACKAGE).as_posix())
                assert lazy or top in sys.stdlib_module_names, f"{path.name}: {name}"


def test_importing_the_package_loads_few_modules() -> None:
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


#: The modules that only re-export a module of a subpackage.
ALIASES = {
    "avro_format": "formats.avro_format",
    "extensions": "event.extensions",
    "protobuf_format": "formats.protobuf_format",
}


@pytest.mark.parametrize(("alias", "module"), ALIASES.items())
def test_an_alias_module_exports_the_same_objects(alias: str, module: str) -> None:
    named = import_module(f"kproto_cloudevents.{alias}")
    target = import_module(f"kproto_cloudevents.{module}")
    assert named.__all__ == target.__all__
    for name in target.__all__:
        assert getattr(named, name) is getattr(target, name)


def test_imports_in_the_documentation_exist() -> None:
    imported = {
        (match[1], name.strip())
        for page in (
            "README.md",
            "docs/how-to/cloudevents.md",
            "docs/how-to/pulsar.md",
            "docs/how-to/spark-read.md",
        )
        for match in re.finditer(
            r"^ *from (kproto_cloudevents[\w.]*) import ([\w, ]+)", page_text(page), re.MULTILINE
        )
        for name in match[2].split(",")
    }
    assert len(imported) > 8
    for module, name in imported:
        assert hasattr(import_module(module), name), f"{module}: {name}"


#: Imports the named module before any other of the package, and prints an event's JSON.
FIRST = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for module in sys.argv[2:]:
    for name in [name for name in sys.modules if name.startswith("kproto_cloudevents")]:
        del sys.modules[name]
    importlib.import_module(module)
    event = sys.modules["kproto_cloudevents.event.cloud_event"].CloudEvent
    print(module, event(id="1", source="/s", type="t").to_kafka_record("structured").value)
"""


@pytest.mark.slow
def test_any_module_may_be_imported_first() -> None:
    modules = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
    ]
    assert "kproto_cloudevents.event.cloud_event" in modules
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", FIRST, str(PACKAGE.parent), *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    written = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
    assert done.stdout.splitlines() == [f"{module} {written!r}" for module in modules]


def test_the_first_program_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    opening = page_text("docs/how-to/cloudevents.md").partition("## Reading")[0]
    lines = [line[4:] for line in opening.splitlines() if not line or line.startswith("    ")]
    exec("\n".join(lines), {})
    assert capsys.readouterr().out == "order.placed {'total': 12}\n"
