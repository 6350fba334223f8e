"""Tests that a program loads only the modules that it uses."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import kproto

#: The folder of the package, which an installed wheel has elsewhere than a checkout.
SOURCES = Path(kproto.__file__).parents[1]

LAZY_PACKAGES = [
    "kproto",
    "kproto.client",
    "kproto.client.admin",
    "kproto.codecs",
    "kproto.protocol.sasl",
    "kproto.records",
    "kproto.security",
]

#: The modules that a plain consumer without TLS and SASL does not need.
UNUSED_BY_CONSUMERS = (
    "kproto.client.admin.topics",
    "kproto.client.consumer.group_consumer",
    "kproto.client.consumer.share_consumer",
    "kproto.client.fetch.share.fetcher",
    "kproto.client.groups.assignor",
    "kproto.client.groups.settings",
    "kproto.client.processing",
    "kproto.client.producer",
    "kproto.protocol.sasl.credentials",
    "kproto.records.magic2.growing_batch",
    "kproto.schema.specs",
    "kproto.security.mechanisms",
    "datetime",
    "difflib",
    "hashlib",
    "importlib.resources",
    "json",
    "pathlib",
    "shutil",
    "stringprep",
    "tempfile",
    "tomllib",
)


def loaded_by(program: str, modules: tuple[str, ...]) -> list[str]:
    """Returns those of `modules` that a fresh interpreter loads for `program`."""
    script = f"{program}\nimport sys\nprint(*(each for each in {modules!r} if each in sys.modules))"
    run = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path[0:0] = [{str(SOURCES)!r}]\n{script}",
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return run.stdout.split()


def test_plain_consumer_loads_neither_producers_nor_groups_nor_sasl() -> None:
    program = """
from kproto import Client
properties = {"bootstrap.servers": "localhost:1", "client.id": "a", "auto.offset.reset": "earliest"}
client = Client.from_properties(properties)
client.consumer("orders")
"""
    assert loaded_by(program, UNUSED_BY_CONSUMERS) == []


def test_producer_loads_neither_consumers_nor_groups() -> None:
    program = """
from kproto import Client
Client("localhost:1").producer()
"""
    unused = (
        "kproto.client.consumer.record_stream",
        "kproto.client.consumer.group_consumer",
        "kproto.client.fetch.fetcher",
        "kproto.client.groups.settings",
        "kproto.client.processing",
        "kproto.security.mechanisms",
        "hashlib",
    )
    assert loaded_by(program, unused) == []


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_table_of_lazy_names_has_the_modules_that_type_checkers_read(package: str) -> None:
    module = import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    table: dict[str, str] = next(
        ast.literal_eval(node.args[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names"
    )
    imported = {
        name.name: f".{node.module}"
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert table == imported
    assert list(table) == module.__all__
    assert {*module.__all__} <= {*dir(module)}
    for name in module.__all__:
        assert getattr(module, name) is getattr(import_module(table[name], package), name)


def test_unknown_name_of_a_lazy_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"kproto.client has no public name 'Producers'"):
        _ = import_module("kproto.client").Producers
