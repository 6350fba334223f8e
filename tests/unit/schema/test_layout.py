"""Tests layouts: which fields a version has, their encodings and their order."""

from __future__ import annotations

import pytest

from kproto.schema.definitions import union
from kproto.schema.layout import FORMATS, Presence, StructLayout, field_form, layout
from kproto.schema.specs import FieldSpec, MessageSpec

DEFINITION = MessageSpec.from_json(
    {
        "apiKey": 900,
        "type": "request",
        "name": "ThingRequest",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "commonStructs": [
            {
                "name": "Shared",
                "versions": "0+",
                "fields": [{"name": "Text", "type": "string", "versions": "0+"}],
            }
        ],
        "fields": [
            {"name": "Gone", "type": "int32", "versions": "0-1"},
            {
                "name": "Label",
                "type": "string",
                "versions": "0+",
                "nullableVersions": "1+",
                "flexibleVersions": "none",
            },
            {
                "name": "Late",
                "type": "int64",
                "versions": "3+",
                "tag": 1,
                "taggedVersions": "3+",
            },
            {
                "name": "Size",
                "type": "Shared",
                "versions": "2+",
                "nullableVersions": "2+",
                "tag": 0,
                "taggedVersions": "3+",
            },
            {"name": "Parts", "type": "[]Shared", "versions": "0+", "nullableVersions": "2+"},
            {"name": "Ids", "type": "[]uuid", "versions": "1+"},
        ],
    }
)


def described(shape: StructLayout) -> list[str]:
    """Returns each field as `name:kind`, then `/c` for compact, `n` for nullable, `#` and tag."""
    out = []
    for field in shape.all_fields():
        marks = ("c" if field.type.compact else "") + ("n" if field.type.nullable else "")
        tag = "" if field.tag is None else f"#{field.tag}"
        out.append(f"{field.attribute}:{field.type.kind}{marks and '/' + marks}{tag}")
    return out


@pytest.mark.parametrize(
    ("version", "fields", "absent"),
    [
        (0, ["gone:int32", "label:string", "parts:array"], {"Late", "Size", "Ids"}),
        (
            1,
            ["gone:int32", "label:string/n", "parts:array", "ids:array"],
            {"Late", "Size"},
        ),
        (
            2,
            ["label:string/n", "size_:struct/n", "parts:array/cn", "ids:array/c"],
            {"Gone", "Late"},
        ),
        (
            3,
            [
                "label:string/n",
                "parts:array/cn",
                "ids:array/c",
                "size_:struct/cn#0",
                "late:int64#1",
            ],
            {"Gone"},
        ),
    ],
)
def test_the_layout_of_each_version(version: int, fields: list[str], absent: set[str]) -> None:
    shape = layout(DEFINITION, version)
    assert described(shape) == fields
    assert {spec.name for spec in shape.absent} == absent
    assert shape.flexible == (version >= 2)
    assert shape.is_message
    assert shape.class_name == "ThingRequest"


def test_structs_inside_have_the_form_of_the_version() -> None:
    for version in range(4):
        (parts,) = (f for f in layout(DEFINITION, version).fields if f.name == "Parts")
        assert parts.type.element is not None
        inner = parts.type.element.struct
        assert inner is not None
        assert (inner.name, inner.is_message, inner.flexible) == ("Shared", False, version >= 2)
        assert described(inner) == ["text:string/c" if version >= 2 else "text:string"]


@pytest.mark.parametrize("version", [-1, 4, 32767])
def test_a_version_that_is_not_valid(version: int) -> None:
    with pytest.raises(ValueError, match=f"ThingRequest has versions 0-3, not {version}"):
        layout(DEFINITION, version)


def test_a_nullable_number_is_never_null() -> None:
    spec = FieldSpec.from_json(
        {"name": "F", "type": "int32", "versions": "0+", "nullableVersions": "0+"}
    )
    assert field_form(spec, 0, flexible=True) == (Presence.PLAIN, False, False)


def test_the_client_id_of_a_request_header_is_never_compact() -> None:
    shape = layout(union()["RequestHeader"], 2)
    assert shape.flexible
    (client_id,) = (field for field in shape.fields if field.name == "ClientId")
    assert not client_id.type.compact
    assert client_id.type.nullable


def test_layouts_are_sound() -> None:
    for name, spec in union().items():
        for version in spec.valid_versions:
            for shape in every_struct(layout(spec, version)):
                tags = [field.tag for field in shape.tagged]
                assert tags == sorted(set(tags), key=lambda tag: tag or 0), name
                assert not tags or shape.flexible, name
                assert all(field.tag is None for field in shape.fields)
                for field in shape.all_fields():
                    assert not (field.type.nullable and field.type.kind in FORMATS), name
                    assert version in field.spec.versions
                assert all(version not in absent.versions for absent in shape.absent)


def every_struct(shape: StructLayout) -> list[StructLayout]:
    found = [shape]
    for field in shape.all_fields():
        inner = (field.type.element or field.type).struct
        if inner is not None:
            found += every_struct(inner)
    return found


def test_every_element_of_an_array_takes_a_byte_or_more() -> None:
    """Because of this, a decoder can refuse an array count above the number of remaining bytes."""

    def check(shape: StructLayout, path: str) -> int:
        """Returns the minimum size of a struct; checks that no array inside has empty elements."""
        fewest = int(shape.flexible)
        for field in shape.all_fields():
            kind, where = field.type, f"{path}.{field.name}"
            struct = kind.struct or (kind.element and kind.element.struct)
            size = check(struct, where) if struct else 1
            assert size or kind.element is None, where
            if field.tag is None:
                fewest += size if kind.struct and not kind.nullable else 1
        return fewest

    for message in union().values():
        for version in message.valid_versions:
            check(layout(message, version), f"{message.name} v{version}")
