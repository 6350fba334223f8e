"""Generates packages with the command `kproto-codegen`, imports them, and tests their messages."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kproto_codegen.cli import main

from kproto.messages.base import Message
from kproto.schema.explain import explain_decode
from kproto.testing.instances import instances


def write_definitions(folder: Path, definitions: Sequence[Mapping[str, Any] | str]) -> Path:
    """Writes each definition to a numbered file in `folder`; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, source in enumerate(definitions):
        text = source if isinstance(source, str) else json.dumps(source, indent=1)
        (folder / f"{index}.json").write_text(text, encoding="utf-8")
    return folder


def generate(schemas: Path, out: Path, *more: str) -> int:
    """Runs `kproto-codegen generate`; the package is named like `out`; returns the exit code."""
    arguments = ["generate", "--schemas", str(schemas), "--package", out.name, "--out", str(out)]
    return main([*arguments, *more])


@contextmanager
def imported(package: Path) -> Iterator[ModuleType]:
    """Imports the package in a folder and yields it; then removes it from sys.modules."""
    sys.path.insert(0, str(package.parent))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(package.name)
    finally:
        sys.path.remove(str(package.parent))
        for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
            del sys.modules[name]


def classes(package: ModuleType) -> list[type[Message]]:
    """Returns every message class of a package."""
    return [getattr(package, name) for name in package.MODULES]


def try_every_version(cls: type[Message]) -> int:
    """Tests instances of every version: bytes, copy, size, `explain_decode` and JSON.

    Returns the number of instances that were encoded to bytes.
    """
    tried = 0
    for version in cls.VALID_VERSIONS:
        for instance in instances(cls, version):
            data = instance.encode(version)
            again = cls.decode(data, version)
            assert again == instance
            assert again.encode(version) == data
            assert instance.copy() == instance
            assert instance.size(version) == len(data)
            assert repr(instance).startswith(f"{cls.__name__}(")
            assert explain_decode(cls._definition(), version, data) is None
            tried += 1
        for instance in instances(cls, version, unknown_tags=False):  # JSON has no unknown tags
            node = instance.to_json(version)
            assert json.loads(json.dumps(node)) == node
            assert cls.from_json(node, version).to_json(version) == node
    return tried
