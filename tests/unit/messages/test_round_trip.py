"""Tests that every version of every message round-trips through bytes and through JSON.

The tested instances must use every feature of the version's layout, such as null or an empty array.
To check this, the test collects the features of the layout and, separately, the features of the
instances, and compares both sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.messages.base import Message, Struct
from kproto.schema.definitions import union
from kproto.schema.explain import explain_decode, explain_encode, is_default
from kproto.schema.layout import StructLayout
from kproto.testing.instances import instances

from .catalogue import SOME_QUICK, class_of, places, shape_of, structs


def possible(shape: StructLayout, kind: str = "") -> Iterator[tuple[str, str]]:
    """Yields the features that a layout allows, such as "null", as (feature, field path)."""
    if shape.flexible:
        yield "unknown tag", kind
    for field in shape.all_fields():
        place = f"{kind}.{field.attribute}" if kind else field.attribute
        yield "not default", place
        if field.type.nullable:
            yield "null", place
        if field.type.kind == "array":
            yield "several elements", place
            yield "no elements", place
        if field.type.kind in {"string", "bytes"}:
            yield "empty", place
            yield "long", place
        if field.type.struct is not None:
            yield from possible(field.type.struct, place)
        elif field.type.element is not None and field.type.element.struct is not None:
            yield from possible(field.type.element.struct, f"{place}[]")


def shown(shape: StructLayout, instance: object) -> Iterator[tuple[str, str]]:
    """Yields the features that an instance uses, such as "null", as (feature, field path).

    Paths have no array indexes.
    """
    for struct, _, _, kind in structs(shape, instance):
        assert isinstance(struct, Struct)
        if struct.unknown_tagged_fields:
            yield "unknown tag", kind
    for place in places(shape, instance):
        value = place.value
        if not is_default(place.field.spec, value) and value is not None:
            yield "not default", place.kind
        if value is None:
            yield "null", place.kind
        elif place.field.type.kind == "array":
            yield ("no elements" if not value else "several elements"), place.kind
        elif place.field.type.kind in {"string", "bytes"}:
            if not value:
                yield "empty", place.kind
            elif len(value if isinstance(value, bytes) else value.encode()) >= 126:
                yield "long", place.kind


def without_unknown_tags(instance: Message, shape: StructLayout) -> Message:
    """Returns a copy without unknown tags, which JSON cannot represent."""
    bare = instance.copy()
    for struct, *_ in structs(shape, bare):
        assert isinstance(struct, Struct)
        struct.unknown_tagged_fields = []
    return bare


@pytest.mark.parametrize("name", SOME_QUICK)
def test_every_feature_of_every_version_round_trips(name: str) -> None:
    cls = class_of(name)
    assert list(cls.VALID_VERSIONS) == list(union()[name].valid_versions)
    for version in cls.VALID_VERSIONS:
        shape = shape_of(name, version)
        seen: set[tuple[str, str]] = set()
        for instance in instances(cls, version):
            check_bytes(instance, version)
            check_json(instance, version, shape)
            seen.update(shown(shape, instance))
        missing = set(possible(shape)) - seen
        assert not missing, f"{name} v{version}: no instance shows {sorted(missing)}"


def check_bytes(instance: Message, version: int) -> None:
    cls, spec = type(instance), type(instance)._definition()
    data = instance.encode(version)
    again = cls.decode(data, version)
    assert again == instance
    assert again.encode(version) == data
    assert instance.size(version) == len(data)
    assert explain_encode(spec, version, instance) is None
    assert explain_decode(spec, version, data) is None
    embedded, end = cls.decode_from(b"head" + data + b"tail", 4, version)
    assert (embedded, end) == (instance, 4 + len(data))


def check_json(instance: Message, version: int, shape: StructLayout) -> None:
    node = instance.to_json(version)
    again = type(instance).from_json(node, version)
    assert again == without_unknown_tags(instance, shape)
    assert again.to_json(version) == node


def test_the_union_has_each_released_version() -> None:
    # 3.9.2 and 4.4.0 have 877 (name, version) pairs; renamed or renumbered ones are merged.
    pairs = sum(len(spec.valid_versions) for spec in union().values())
    assert pairs == 865
    assert list(union()["ProduceRequest"].valid_versions) == list(range(14))
    assert list(union()["LeaderAndIsrRequest"].valid_versions) == list(range(8))


def test_the_comparison_finds_a_missing_feature() -> None:
    shape = shape_of("FetchResponse", 16)
    cls = class_of("FetchResponse")
    seen: set[tuple[str, str]] = set()
    for instance in instances(cls, 16):
        message: Any = instance
        message.error_code = 0
        seen.update(shown(shape, instance))
    assert set(possible(shape)) - seen == {("not default", "error_code")}
