"""Tests a package generated from unusual definitions: every type, and conflicting names."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kproto_codegen.emit.package import generate
from kproto_codegen.emit.plan import NEVER_LAZY

from kproto.messages.base import DEFAULT, Request
from kproto.schema.explain import explain_decode
from kproto.schema.specs import MessageSpec
from kproto.testing.instances import instances
from kproto.wire.errors import DecodeError, EncodeError

#: A text that must be wrapped, with parts that look like code or a template.
TEXT = "a" * 80 + "(((['\"\\ {{ x }} {% y %} \n\r\t\u2028 é 💥 , = if else )"


def field(name: str, kind: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **keys}


def tagged(name: str, kind: str, tag: int, **keys: Any) -> dict[str, Any]:
    return field(name, kind, tag=tag, taggedVersions="1+", **keys)


#: The names in NEVER_LAZY as field names.
NEVER_LAZY_NAMES = {name.title().replace("_", "") for name in NEVER_LAZY}

DEFINITIONS: list[dict[str, Any]] = [
    {
        "apiKey": 500,
        "type": "request",
        "name": "OddRequest",
        "listeners": ["broker"],
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": [
            field("Class", "string", default=TEXT),
            field("List", "[]int32"),
            field("Self", "bool"),
            field("Size", "int64", default="-0x10"),
            field("Id", "uuid", default="AAAAAAAAAAAAAAAAAAAAAQ"),
            field("Type", "float64", default="1e300", about='"""It\'s""" \\ odd'),
            *(
                field(name, "int16")
                for name in ("Version", "Data", "Pos", "Message", "Entry", "Append", "Length")
            ),
            *(field(name, "int8") for name in ("Cls", "Out", "Count", "Struct", "Iterable")),
            field("Unsigned", "uint16"),
            field("Wide", "uint32", default="0xffffffff"),
            field("Switches", "[]bool"),
            field("Blobs", "[]bytes"),
            field("Ratios", "[]float64", nullableVersions="1+"),
            field(
                "Items",
                "[]Exception",
                nullableVersions="1+",
                fields=[
                    field("None", "string", mapKey=True),
                    field("Find", "int32", mapKey=True),
                    field("Copy", "bytes", nullableVersions="0+", default="null"),
                    field("UnknownTaggedFields", "bool"),
                ],
            ),
            field(
                "Nested",
                "Struct",
                nullableVersions="2+",
                default="null",
                fields=[
                    tagged(
                        "Deep",
                        "Uuid",
                        0,
                        nullableVersions="1+",
                        fields=[tagged("Ids", "[]uuid", 0)],
                    )
                ],
            ),
        ],
    },
    {"apiKey": 500, "type": "response", "name": "OddResponse", "validVersions": "0"}
    | {"flexibleVersions": "none", "fields": []},
    {
        "type": "data",
        "name": "Base",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [
            field("Nothings", "[]Nothing", fields=[]),
            tagged("On", "bool", 0, default="true"),
            tagged("Empty", "[]string", 1),
            tagged("Null", "[]string", 2, nullableVersions="1+", default="null"),
            tagged("Text", "string", 3, nullableVersions="1+"),
        ],
    },
    {
        "type": "data",
        "name": "Tagged",
        "validVersions": "0-1",
        "flexibleVersions": "0+",
        "fields": [
            # The property and the slot of these fields must not hide an attribute of the class.
            *(
                field(name, f"Of{name}", tag=tag, taggedVersions="0+", fields=inner)
                for tag, name in enumerate(sorted(NEVER_LAZY_NAMES | {"Plain"}))
                for inner in [[field("A", "int32"), field("B", "string")]]
            ),
            field(
                "Inner",
                "Inside",
                fields=[
                    field(name, "Innermost", tag=tag, taggedVersions="0+")
                    for tag, name in enumerate(("Names", "Property", "Shown", "UnknownTags"))
                ],
            ),
        ],
        "commonStructs": [
            {"name": "Innermost", "versions": "0+", "fields": [field("A", "bool", default="true")]}
        ],
    },
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Returns the package, generated once for this module."""
    folder = tmp_path_factory.mktemp("generated")
    out = folder / "odd_messages"
    specs = [MessageSpec.from_json(node) for node in DEFINITIONS]
    generate(specs, package=out.name, out=out, definitions=out / "definitions.jsonl")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(out.name)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == out.name]:
            del sys.modules[name]


@pytest.mark.parametrize("name", [node["name"] for node in DEFINITIONS])
def test_every_version_round_trips(odd: ModuleType, name: str) -> None:
    cls = getattr(odd, name)
    for version in cls.VALID_VERSIONS:
        for instance in instances(cls, version):
            data = instance.encode(version)
            assert cls.decode(data, version) == instance == instance.copy()
            assert cls.decode(data, version).encode(version) == data
            node = instance.to_json(version)
            # A struct at its default is not written to JSON, and neither are its unknown tags.
            plain = cls.from_json(node, version)
            assert cls.from_json(plain.to_json(version), version) == plain
            assert explain_decode(cls._definition(), version, data) is None
            for cut in range(0, len(data), 1 + len(data) // 16):
                with pytest.raises(DecodeError, match=f"{name} v{version}, .*at byte"):
                    cls.decode(data[:cut], version)


def test_no_slot_hides_an_inherited_attribute() -> None:
    inherited = {name for base in Request.__mro__[:-1] for name in vars(base)}
    slots = {name[1:] for name in inherited if re.fullmatch("_[a-z][a-z_]*", name)}
    assert slots >= {"names", "read_fields", "unknown_tags"}
    assert slots <= NEVER_LAZY


def test_structs_are_made_on_access_unless_that_hides_an_attribute(odd: ModuleType) -> None:
    message = odd.Tagged()
    assert message._plain is DEFAULT
    for name in NEVER_LAZY:
        getattr(message, name).a = 5
    assert repr(message).count("a=5") == len(NEVER_LAZY)
    assert odd.Tagged.decode(message.encode(1), 1) == message


def test_defaults_are_those_of_the_definition(odd: ModuleType) -> None:
    request = odd.OddRequest()
    assert request.class_ == TEXT
    assert (request.size_, request.wide, request.type) == (-16, 2**32 - 1, 1e300)
    assert request.id == bytes(15) + b"\1"
    assert request.list_ == []
    assert request.self_ is False


def test_reserved_names_get_an_underscore(odd: ModuleType) -> None:
    request = odd.OddRequest.decode(instances(odd.OddRequest, 2)[2].encode(2), 2)
    (first, _) = request.items
    assert type(first).__name__ == "Exception_"
    assert request.items.find(none=first.none, find=first.find) is first
    assert first.unknown_tagged_fields_ in (True, False)
    assert first.unknown_tagged_fields[0].tag == 5000


def test_errors_come_from_the_definitions_of_the_package(odd: ModuleType) -> None:
    request = odd.OddRequest(switches=[True, None])
    with pytest.raises(EncodeError) as caught:
        request.encode(1)
    assert caught.value.field == "switches[1]"


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("name", ["switches", "ratios", "blobs", "items"])
def test_a_mapping_is_refused_as_an_array(odd: ModuleType, name: str, version: int) -> None:
    key = {"switches": True, "ratios": 0.5, "blobs": b"a", "items": odd.OddRequest}[name]
    request = odd.OddRequest()
    setattr(request, name, {key: 1})
    with pytest.raises(EncodeError, match="a list is wanted, not dict") as caught:
        request.encode(version)
    assert caught.value.field == name


def test_nothing_is_written_outside_of_the_folder(odd: ModuleType) -> None:
    assert odd.__file__ is not None
    folder = Path(odd.__file__).parent
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "__init__.py",
        "base_.py",
        "definitions.jsonl",
        "odd_request.py",
        "odd_response.py",
        "py.typed",
        "tagged.py",
    }
    assert {path.name for path in folder.parent.iterdir()} == {folder.name}
