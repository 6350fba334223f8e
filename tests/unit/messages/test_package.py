"""Tests the package of messages: imports are lazy, no message is missing, former names remain."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kproto
from kproto import messages
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.schema.naming import class_name, module_name

from .catalogue import NAMES, class_of

FOLDER = Path(messages.__file__).parent


def printed_by(program: str) -> list[str]:
    """Returns the lines that a program prints in a new interpreter."""
    root = Path(kproto.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


LOADED = """
import sys
def loaded():
    names = [name for name in sys.modules if name.startswith("kproto.")]
    print(*sorted(name.removeprefix("kproto.") for name in names))
"""


def test_importing_the_package_loads_no_message() -> None:
    (loaded,) = printed_by(f"{LOADED}\nimport kproto.messages\nloaded()")
    assert loaded == "lazy_names messages"


def test_a_message_loads_its_own_module_and_nothing_of_the_schema() -> None:
    program = f"{LOADED}\nfrom kproto.messages import HeartbeatRequest\nloaded()\n"
    work = "HeartbeatRequest.decode(HeartbeatRequest().encode(4), 4)\nloaded()"
    before, after = printed_by(program + work)
    assert before == after
    loaded = before.split()
    found = {name for name in loaded if name.startswith("messages.")}
    if kproto.__compiled__:
        found -= {"messages.compiled", "messages.compiled.heartbeat_request"}
    assert found == {"messages.base", "messages.heartbeat_request"}
    assert not [name for name in loaded if name.startswith("schema")]


def test_nothing_but_the_standard_library_is_loaded() -> None:
    program = """
import sys
import kproto.messages as messages
for name in messages.MODULES:
    message = getattr(messages, name)()
    try:
        message.decode(b"", -1)
    except Exception:
        pass
messages.MetadataRequest().to_json(9)
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""
    (others,) = printed_by(program)
    # Files in site-packages may load modules at the start of any program.
    (always,) = printed_by(
        "import sys;"
        'print(*sorted({n.partition(".")[0] for n in sys.modules} - sys.stdlib_module_names))'
    )
    # The second name is the library of a platform wheel.
    loaded = set(others.split()) - set(always.split()) - {"kproto__mypyc"}
    assert loaded == {"kproto"}


def test_every_message_is_there_by_name() -> None:
    assert set(messages.MODULES) == {class_name(name) for name in NAMES}
    for name in NAMES:
        cls = class_of(name)
        assert issubclass(cls, Message)
        assert cls.__module__ == f"kproto.messages.{module_name(name)}"
        assert cls.__name__ in messages.__all__
        assert cls.__name__ in dir(messages)


def test_checkers_and_editors_see_what_is_loaded_lazily() -> None:
    tree = ast.parse((FOLDER / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == messages.MODULES
    former = {
        node.targets[0].id: node.value.id
        for node in block.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Name)
    }
    assert former == messages.FORMER_NAMES


def test_there_is_no_module_without_a_message() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    assert modules == set(messages.MODULES.values())


def test_api_keys_name_request_and_response() -> None:
    for key, (request, response) in messages.API_KEYS.items():
        assert getattr(messages, request).API_KEY == getattr(messages, response).API_KEY == key
    assert messages.API_KEYS[3] == ("MetadataRequest", "MetadataResponse")
    requests = [spec for spec in union().values() if spec.type == "request"]
    assert len(messages.API_KEYS) == len(requests)


def test_former_names_resolve_to_the_class_of_today() -> None:
    assert messages.FORMER_NAMES
    for former, name in messages.FORMER_NAMES.items():
        assert former not in messages.MODULES
        assert getattr(messages, former) is getattr(messages, name)


def test_a_request_renamed_since_is_found_by_its_old_name() -> None:
    from kproto.messages import ListConfigResourcesRequest

    old = messages.ListClientMetricsResourcesRequest
    assert old is ListConfigResourcesRequest


def test_an_unknown_name_is_an_attribute_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match=r"kproto.messages has no message 'MetadataReqest'"):
        _ = messages.MetadataReqest  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from kproto.messages import Nothing  # type: ignore[attr-defined] # noqa: F401


@pytest.mark.slow
def test_no_struct_can_hide_what_a_generated_module_imports() -> None:
    imported = {
        alias.name
        for path in FOLDER.glob("*_re*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.isalnum() and alias.name[0].isupper()
    }
    assert imported >= {"BOOLS", "Collection", "UVARINT", "Uuid", "WireFault"}
    assert [name for name in sorted(imported) if class_name(name) == name] == []
