"""Tests the glossary and `schemas/`: every field has a sentence in docstring style."""

from __future__ import annotations

import json
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kproto import messages
from kproto.schema.definitions import union
from kproto.schema.glossary import Glossary, load_glossary
from kproto.schema.naming import attribute_name, class_name
from kproto.schema.specs import FieldSpec, MessageSpec

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"
GLOSSARY = ROOT / "kproto" / "schema" / "glossary.toml"

#: The number of definitions in the jars of each release, summed over all modules.
DEFINITIONS = {"3.9.2": 240, "4.4.0": 286}

LONGEST = 120


class FieldPath(NamedTuple):
    """The path of a field: message, struct and field name."""

    message: str
    struct: str
    field: FieldSpec

    def __str__(self) -> str:
        return f"{self.message}.{self.struct}.{self.field.name}"


@cache
def definitions(release: str) -> tuple[MessageSpec, ...]:
    """Returns every message of a release."""
    paths = sorted((SCHEMAS / release).glob("*/*.json"))
    return tuple(MessageSpec.from_json(json.loads(path.read_text())) for path in paths)


def specs() -> list[MessageSpec]:
    return [message for release in DEFINITIONS for message in definitions(release)]


def field_paths() -> list[FieldPath]:
    """Returns the path of every field; for a top-level field, the struct is the message itself."""
    return [
        FieldPath(message.name, struct, field)
        for message in specs()
        for struct, fields in [
            (message.name, message.fields),
            *((struct.name, struct.fields) for struct in message.structs()),
        ]
        for field in fields
    ]


def struct_names() -> set[str]:
    """Returns two names of every struct: "Struct" and "Message.Struct"."""
    return {
        name
        for message in specs()
        for struct in message.structs()
        for name in (struct.name, f"{message.name}.{struct.name}")
    }


def tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(GLOSSARY.read_text())


def sentences() -> dict[str, str]:
    """Returns every sentence of the glossary, by its key in the glossary file."""
    glossary = load_glossary()
    named: dict[str, dict[str, str]] = {
        "fields": dict(glossary.fields),
        "messages": dict(glossary.messages),
        "structs": dict(glossary.structs),
        **{f"overrides.{scope}": dict(texts) for scope, texts in glossary.overrides.items()},
    }
    return {f"{table}.{key}": text for table, texts in named.items() for key, text in texts.items()}


def text_of(path: FieldPath) -> str:
    """Returns the glossary's sentence for a field, or an empty string."""
    return load_glossary().field(path.message, path.struct, path.field.name) or ""


@pytest.mark.parametrize(("release", "count"), DEFINITIONS.items())
def test_all_definitions_are_compared(release: str, count: int) -> None:
    assert len(definitions(release)) == count


class TestCompleteness:
    def test_general_entries_are_the_field_names(self) -> None:
        assert set(load_glossary().fields) == {path.field.name for path in field_paths()}

    def test_message_entries_are_the_message_names(self) -> None:
        assert set(load_glossary().messages) == {message.name for message in specs()}

    def test_every_struct_has_an_entry(self) -> None:
        plain = {name for name in struct_names() if "." not in name}
        assert plain - set(load_glossary().structs) == set()

    def test_every_struct_entry_names_a_struct(self) -> None:
        assert set(load_glossary().structs) - struct_names() == set()

    def test_every_override_names_an_existing_field(self) -> None:
        known = {
            (scope, path.field.name)
            for path in field_paths()
            for scope in (path.message, f"{path.message}.{path.struct}")
        }
        named = {
            (scope, field) for scope, texts in load_glossary().overrides.items() for field in texts
        }
        assert named - known == set()

    def test_every_override_differs_from_the_entry_it_overrides(self) -> None:
        glossary = load_glossary()
        for scope, texts in glossary.overrides.items():
            message = scope.partition(".")[0]
            wider = glossary.overrides.get(message, {}) if scope != message else {}
            repeated = [
                field
                for field, text in texts.items()
                if text == wider.get(field, glossary.fields[field])
            ]
            assert repeated == [], scope


class TestContent:
    def test_times_name_their_unit(self) -> None:
        timed = [path for path in field_paths() if path.field.name.endswith(("Ms", "imestamp"))]
        assert timed
        assert [str(path) for path in timed if " ms" not in text_of(path)] == []

    def test_sizes_name_their_unit(self) -> None:
        sized = [path for path in field_paths() if path.field.name.endswith(("Bytes", "Size"))]
        byte_counts = [
            path
            for path in sized
            if path.field.type.startswith("int") and path.field.name != "BatchSize"
        ]
        assert byte_counts
        wanting = [str(path) for path in byte_counts if "bytes" not in text_of(path).lower()]
        assert wanting == []

    def test_null_is_explained_if_it_is_allowed(self) -> None:
        nullable = [path for path in field_paths() if path.field.nullable_versions]
        assert nullable
        assert [str(path) for path in nullable if "null" not in text_of(path)] == []

    def test_null_is_not_mentioned_if_it_is_not_allowed(self) -> None:
        ever_nullable = {str(path) for path in field_paths() if path.field.nullable_versions}
        wrong = {str(path) for path in field_paths() if "null" in text_of(path)} - ever_nullable
        assert wrong == set()

    def test_a_negative_default_is_explained(self) -> None:
        negative = [path for path in field_paths() if (path.field.default or "").startswith("-")]
        assert negative
        wanting = [
            str(path)
            for path in negative
            if str(path.field.default).replace("-2147483648", "-(2**31)") not in text_of(path)
        ]
        assert wanting == []


class TestForm:
    def test_each_entry_is_one_short_sentence(self) -> None:
        for where, text in sentences().items():
            assert text.endswith("."), where
            assert text[0].isupper() or text[0].isdigit(), where
            assert len(text) <= LONGEST, where

    def test_each_entry_can_be_part_of_a_docstring(self) -> None:
        for where, text in sentences().items():
            assert text.isascii(), where
            assert text.isprintable(), where
            assert "\\" not in text, where
            assert '"' not in text, where

    def test_keys_are_sorted(self) -> None:
        for name, table in tables().items():
            assert list(table) == sorted(table), name
        for scope, texts in tables()["overrides"].items():
            assert list(texts) == sorted(texts), scope


class TestLookup:
    GLOSSARY = Glossary(
        fields={"Name": "general", "Id": "general id"},
        overrides={
            "FirstRequest": {"Name": "anywhere in it"},
            "FirstRequest.Topic": {"Name": "in its topics"},
            "SecondRequest.SecondRequest": {"Name": "at its top"},
        },
        messages={"FirstRequest": "the first", "SecondRequest": "the second"},
        structs={"Topic": "any topic", "FirstRequest.Topic": "its topic"},
    )

    @pytest.mark.parametrize(
        ("message", "struct", "field", "text"),
        [
            ("FirstRequest", "Topic", "Name", "in its topics"),
            ("FirstRequest", "Partition", "Name", "anywhere in it"),
            ("FirstRequest", "FirstRequest", "Name", "anywhere in it"),
            ("FirstRequest", "Topic", "Id", "general id"),
            ("SecondRequest", "SecondRequest", "Name", "at its top"),
            ("SecondRequest", "Topic", "Name", "general"),
            ("SecondRequest", "Topic", "Offset", None),
            ("ShopRequest", "ShopRequest", "Name", None),  # it is not Kafka's
        ],
    )
    def test_the_narrowest_entry_is_returned(
        self, message: str, struct: str, field: str, text: str | None
    ) -> None:
        assert self.GLOSSARY.field(message, struct, field) == text

    def test_messages_are_looked_up(self) -> None:
        assert self.GLOSSARY.message("FirstRequest") == "the first"
        assert self.GLOSSARY.message("ThirdRequest") is None

    def test_structs_are_looked_up(self) -> None:
        assert self.GLOSSARY.struct("FirstRequest", "Topic") == "its topic"
        assert self.GLOSSARY.struct("SecondRequest", "Topic") == "any topic"
        assert self.GLOSSARY.struct("FirstRequest", "Partition") is None
        assert self.GLOSSARY.struct("ShopRequest", "Topic") is None

    def test_loading_twice_reads_once(self) -> None:
        assert load_glossary() is load_glossary()


@pytest.mark.slow
def test_every_field_is_explained_in_the_generated_docstring() -> None:
    explained = 0
    for spec in union().values():
        if not spec.valid_versions:
            continue
        cls = getattr(messages, class_name(spec.name))
        module = sys.modules[cls.__module__]
        for name, fields in [
            (spec.name, spec.fields),
            *((s.name, s.fields) for s in spec.structs()),
        ]:
            owner = getattr(module, class_name(name))
            printed = " ".join((owner.__doc__ or "").split())
            for field in fields:
                attribute = attribute_name(field.name, of_message=fields is spec.fields)
                text = load_glossary().field(spec.name, name, field.name)
                assert text, f"{spec.name}.{name}.{field.name}"
                assert f"{attribute}: {text}" in printed, owner
                explained += 1
    assert explained > 2000
