"""Tests hostile definitions: names that generated code uses, paths, and code in texts."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.reading.parser import parse_definition
from kproto_codegen.rules.table import checked_spec

from kproto import messages
from kproto.schema.naming import attribute_name, class_name, snake_case
from kproto.schema.specs import PRIMITIVE_TYPES

from .packages import classes, generate, imported, try_every_version, write_definitions
from .samples import field, message

#: Texts that would do harm as code, as a template, as a path, or on a terminal.
TEXTS: Final = (
    '""" + exit() + """',
    "'''; import os; '''",
    '"\\',
    "\\\\\\",
    "line\nfeed\r\n\tand tab \x00 \x1b[2J",
    "{{ 7 * 7 }} {% for x in y %} {# note #}",
    "../../outside",
    "%s %(x)s {0} {x} $x `x`",
    "\u2028\u2029\u0085\u202e é 💥",
    ")" * 90 + " if x else y = (",
    "a, " * 60,
)

#: The types of the fields, in turn.
TYPES: Final = ("int32", "string", "bool", "[]int64", "uuid", "bytes", "int8", "[]string")


def capitalised(name: str) -> str:
    """Returns the definition's name for a Python name, such as TopicId for `topic_id`."""
    return "".join(word.capitalize() for word in name.split("_"))


def names_in_generated_code() -> set[str]:
    """Returns the names that the generated code of Kafka's messages uses, except struct names.

    Skips the functions `__init__`, `find` and `find_all`, because their parameters are fields.
    """
    found: set[str] = set()
    structs: set[str] = set()
    for path in Path(messages.__file__).parent.glob("*.py"):
        todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
        while todo:
            node = todo.pop()
            match node:
                case ast.FunctionDef(name="__init__" | "find" | "find_all"):
                    continue  # its parameters are fields
                case ast.Name(id=name) | ast.arg(arg=name):
                    found.add(name)
                case ast.alias(name=name) | ast.FunctionDef(name=name):
                    found.add(name)
                case ast.ClassDef(name=name):
                    structs.add(name)
            todo += ast.iter_child_nodes(node)
    return found - (structs - {"Struct", "Message", "Request", "Response", "KeyedList"})


@cache
def taken() -> set[str]:
    """Returns the names in generated code, and Python's builtins and keywords."""
    return names_in_generated_code() | set(dir(builtins)) | {*keyword.kwlist, *keyword.softkwlist}


@cache
def field_names() -> list[str]:
    """Returns the field names, such as TopicId, whose Python names are in `taken()`."""
    lower = (name for name in taken() if re.fullmatch("[a-z][a-z0-9_]*[a-z0-9]", name))
    return sorted({capitalised(name) for name in lower})


@cache
def class_names() -> list[str]:
    """Returns struct names that are in `taken()`, or that a generated module may import."""
    return sorted(
        {name for name in taken() if re.fullmatch("[A-Z][A-Za-z0-9]*", name)}
        | {"Any", "MODULES", "List", "Str", "Bytes", "Int", "Dict", "Class", "Def", "Base", "Init"}
        | {"Definitions", "ImportModule", "Kproto", "Typing", "Annotations", "Struct", "Match"}
        | {"Type"}
    )


def unique(names: Iterable[str]) -> list[str]:
    """Returns the names without those that have the same Python name as a later name."""
    return list({snake_case(name): name for name in names}.values())


def fields(names: Iterable[str]) -> list[dict[str, Any]]:
    """Returns a field for each name; the types alternate."""
    made: list[dict[str, Any]] = []
    for index, name in enumerate(unique(names)):
        nullable = {"nullableVersions": "1+"} if index % 8 in {1, 5, 7} else {}
        made.append(field(name, TYPES[index % len(TYPES)], **nullable))
    return made


def tagged(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the same fields, tagged in every flexible version."""
    return [{**entry, "tag": tag, "taggedVersions": "1+"} for tag, entry in enumerate(fields)]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_fields_of_every_name_that_the_generated_code_uses(tmp_path: Path) -> None:
    assert {"Id", "Type", "Self", "Cls", "Version", "Append", "Data", "Pos", "Message"} < set(
        field_names()
    )
    assert {"Entry", "Encode", "Decode", "Size", "Copy", "Class", "Match", "Len"} < set(
        field_names()
    )
    assert len(field_names()) > 150
    keys = [{**field(name, "string"), "mapKey": True} for name in unique(field_names())[:40]]
    definitions = [
        message(*fields(field_names()), name="PlainRequest", validVersions="0-1"),
        message(
            *tagged(fields(field_names())), name="TaggedRequest", validVersions="0-1", apiKey=901
        ),
        message(
            field("Items", "[]Item", fields=fields(field_names()), nullableVersions="0+"),
            field("Tagged", "Other", fields=tagged(fields(field_names()))),
            field("Keyed", "[]Key", fields=keys),
            name="InnerRequest",
            validVersions="0-1",
            apiKey=902,
        ),
    ]
    out = tmp_path / "names_of_fields"
    assert generate(write_definitions(tmp_path / "schemas", definitions), out) == 0
    with imported(out) as package:
        for cls in classes(package):
            assert try_every_version(cls) > 10
        plain = package.PlainRequest
        wanted = {attribute_name(name, of_message=True) for name in field_names()}
        assert set(plain.__slots__) == wanted
        module = sys.modules[package.InnerRequest.__module__]
        name = attribute_name(keys[7]["name"], of_message=False)
        holder = package.InnerRequest(keyed=[module.Key(**{name: "x"})])
        assert holder.keyed.find(**{name: "x"}) is holder.keyed[0]


@pytest.mark.slow
def test_structs_and_messages_of_every_name_that_the_generated_code_uses(tmp_path: Path) -> None:
    assert {"Self", "Struct", "Uuid", "Iterable", "Exception", "None", "True"} < set(class_names())
    inner = [
        field(
            f"Field{index}",
            name if index % 2 else f"[]{name}",
            fields=[{**field("X", "string"), "mapKey": index % 4 == 0}],
            **({"nullableVersions": "1+"} if index % 3 == 0 else {}),
        )
        for index, name in enumerate(unique(class_names()))
        if name.lower() not in PRIMITIVE_TYPES  # "Bytes" would be a misspelled type
    ]
    own = [
        message(field("X"), name=name, type="data", apiKey=None, validVersions="1")
        for name in unique(class_names())
    ]
    rpcs = [
        message(field("X"), name="Request"),
        message(field("X"), name="Response", type="response"),
    ]
    names = {entry["name"] for entry in rpcs}
    definitions = [
        message(*inner, apiKey=901, validVersions="0-1"),
        *rpcs,
        *(entry for entry in own if entry["name"] not in names),
    ]
    out = tmp_path / "names_of_classes"
    assert generate(write_definitions(tmp_path / "schemas", definitions), out) == 0
    with imported(out) as package:
        found = classes(package)
        assert len(found) == len(definitions)
        for cls in found:
            assert try_every_version(cls) > 2
        assert package.API_KEYS == {900: ("Request_", "Response_")}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_stay_texts(text: str, tmp_path: Path) -> None:
    definition = message(
        field("A", "string", default=text, about=text),
        field("B", "[]Item", about=text, fields=[field("C", "string", default=text, about=text)]),
        {**field("D", "string", "1+", default=text), "tag": 0, "taggedVersions": "1+"},
    )
    out = tmp_path / "texts"
    assert generate(write_definitions(tmp_path / "schemas", [definition]), out) == 0
    tree = ast.parse((out / "sample_request.py").read_text(encoding="utf-8"))
    assert {type(node) for node in tree.body} <= {
        ast.Expr,
        ast.Import,
        ast.ImportFrom,
        ast.If,
        ast.Assign,
        ast.ClassDef,
        ast.FunctionDef,
    }
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    with imported(out) as package:
        made = package.SampleRequest()
        assert (made.a, made.d) == (text, text)
        assert try_every_version(package.SampleRequest)
    assert {path.name for path in tmp_path.iterdir()} == {"schemas", "texts"}


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/etc/passwd",
        "A/B",
        "a.b",
        "__init__",
        "base",
        "__class__",
        "A\n",
        "A b",
        "A:",
        "Ä",
        "A\u200b",
        "Ⅷ",
        "",
        " ",
        "con",
        "A" * 121,
    ],
)
def test_invalid_names_are_refused(name: str, tmp_path: Path) -> None:
    """A message or struct with this name is refused; no file is written.

    Each name except `base` and `con` is also refused for a field.
    """
    definitions: list[Mapping[str, Any]] = [
        message(type="data", name=name, apiKey=None),
        message(field("A", f"[]{name}", fields=[field("X")])),
        message(commonStructs=[{"name": name, "versions": "0+", "fields": []}]),
    ]
    if name not in {"base", "con"}:
        definitions.append(message(field(name)))
    for index, definition in enumerate(definitions):
        schemas = write_definitions(tmp_path / str(index), [definition])
        assert generate(schemas, tmp_path / "out") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        str(index) for index in range(len(definitions))
    ]


@pytest.mark.parametrize("name", ["list", "int", "str", "struct", "self", "Int32", "Bool"])
def test_structs_that_could_be_taken_for_types(name: str) -> None:
    for kind in (name, f"[]{name}"):
        with pytest.raises(DefinitionError, match=r"sample.json:\d+: field A: .* is no type"):
            _checked(message(field("A", kind, fields=[field("X")])))


def _checked(source: Mapping[str, Any]) -> object:
    return checked_spec(parse_definition(json.dumps(source, indent=1), file="sample.json"))


@pytest.mark.parametrize(
    ("one", "other", "made"),
    [
        ("fooBar", "FooBar", "foo_bar"),
        ("FOOBar", "FooBar", "foo_bar"),
        ("FooBAR", "fooBar", "foo_bar"),
        ("Foo1", "FOO1", "foo1"),
    ],
)
def test_fields_that_become_one_in_python(one: str, other: str, made: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        _checked(message(field(one), field(other)))
    error = caught.value
    assert (error.file, error.line, error.field) == ("sample.json", 14, other)
    assert error.reason == f"is also the name of the field {one}, as {made} in Python"


def test_definitions_deeper_than_the_stack() -> None:
    deep = 100_000
    field_of = '{"name": "A", "type": "[]S", "versions": "0+", "fields": ['
    head = '{"type": "data", "name": "Deep", "validVersions": "0", "flexibleVersions": "0+", '
    texts = [
        head + '"fields": [' + field_of * deep,
        head + '"fields": ' + "[" * deep,
        head + '"fields": [{"name": "A", "default": ' + '{"a": ' * deep,
        "{" * deep,
        "/*" * deep,
        "//" * deep,
        '"' + "\\" * deep,
    ]
    for text in texts:
        with pytest.raises(DefinitionError):
            parse_definition(text, file="deep.json")


HUGE: Final = "9" * 5000


@pytest.mark.parametrize("kind", ["int8", "int64", "uint32", "float64", "bool", "uuid", "bytes"])
@pytest.mark.parametrize(
    "number", [HUGE, f"-{HUGE}", f"{HUGE}.5", f"1e{HUGE}", f"0x{HUGE}", f"0{HUGE}"]
)
def test_numbers_longer_than_python_converts(kind: str, number: str) -> None:
    for default in (f'"{number}"', number):
        text = json.dumps(message(field("A", kind, default="D"))).replace('"D"', default)
        with pytest.raises(DefinitionError):
            checked_spec(parse_definition(text, file="huge.json"))


@pytest.mark.parametrize(
    "key", ["apiKey", "validVersions", "flexibleVersions", "deprecatedVersions"]
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_keys_longer_than_python_converts(key: str, quote: str) -> None:
    for number in (HUGE, f"-{HUGE}", f"0-{HUGE}", f"{HUGE}+"):
        text = json.dumps(message(**{key: "D"})).replace('"D"', quote + number + quote)
        with pytest.raises(DefinitionError):
            checked_spec(parse_definition(text, file="huge.json"))
    for entry in ("tag", "versions", "taggedVersions", "nullableVersions"):
        text = json.dumps(message({**field("A"), entry: "D"}))
        with pytest.raises(DefinitionError):
            checked_spec(
                parse_definition(text.replace('"D"', quote + HUGE + quote), file="huge.json")
            )


@pytest.mark.slow
def test_class_and_module_names_of_the_hostile_are_apart() -> None:
    made = [class_name(name) for name in class_names()]
    assert len(set(made)) == len(made)
