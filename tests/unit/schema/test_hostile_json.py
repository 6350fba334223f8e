"""Tests any JSON in any field of any message: the message is read, or an error names the field."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.schema.definitions import union
from kproto.schema.json_converter import json_name
from kproto.schema.layout import StructLayout, layout
from kproto.schema.naming import class_name
from kproto.testing.instances import Fill, instance
from kproto.wire.errors import DecodeError
from tests.support.examples import examples
from tests.unit.messages.catalogue import NAMES, SOME_EVERYDAY, class_of

#: Wrong values for a field: one of each type, and unusual ones.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**40, 2**64, 10**5000, 0.0, 1.5, float("nan"), float("inf")),
    *("", "text", "AA==", "AAAAAAAAAAAAAAAAAAAABQ", "+" * 22, "\ud800", "x" * 40000, "\0"),
    *([], [None], [[]], [{}], [1], ["a"], {}, {"": None}, {"name": {}}),
)

#: Any value that Python's JSON parser returns, and keys that it never returns.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(shape: StructLayout, node: Any, path: str = "") -> Iterator[tuple[Any, str, str]]:
    """Yields (object, key, path) of each field in a JSON message; fields of other versions, too."""
    for field in shape.all_fields():
        key = json_name(field.name)
        where = f"{path}.{key}" if path else key
        yield node, key, where
        inner = (field.type.element or field.type).struct
        if inner is None or not node.get(key):
            continue
        if field.type.kind == "struct":
            yield from places(inner, node[key], where)
        else:
            yield from places(inner, node[key][0], f"{where}[0]")
    for spec in shape.absent:
        key = json_name(spec.name)
        yield node, key, f"{path}.{key}" if path else key


def put(name: str, version: int, node: Any, place: tuple[Any, str, str], value: Any) -> None:
    """Reads the JSON with `value` in one field; an error must name this field or one inside it."""
    owner, key, path = place
    original = owner.get(key, ...)
    owner[key] = value
    fault: DecodeError | None = None
    try:
        class_of(name).from_json(node, version).encode(version)
    except DecodeError as error:
        fault = error
    if fault is not None:
        assert (fault.message, fault.version) == (name, version)
        assert fault.field is not None
        assert fault.field.startswith(path), (fault, path)
    if original is ...:
        del owner[key]
    else:
        owner[key] = original


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_any_value_in_any_field_is_read_or_refused(name: str) -> None:
    cls = class_of(name)
    for version in sorted({cls.VALID_VERSIONS[0], cls.VALID_VERSIONS[-1]}):
        node = instance(cls, version, Fill.FULL, unknown_tags=False).to_json(version)
        before = copy.deepcopy(node)
        found = list(places(layout(union()[name], version), node))
        # Each value is tried in some fields, and each field gets some of the values.
        step = min(len(found), 4)
        for number, place in enumerate(found):
            for value in VALUES[number % step :: step]:
                put(name, version, node, place, value)
        assert node == before


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_each_field_without_a_tag_is_required(name: str) -> None:
    cls = class_of(name)
    for version in cls.VALID_VERSIONS:
        shape = layout(union()[name], version)
        node = instance(cls, version, Fill.FULL, unknown_tags=False).to_json(version)
        tagged = {json_name(field.name) for field in shape.tagged}
        for key in list(node):
            original = node.pop(key)
            if key in tagged:
                cls.from_json(node, version)
            else:
                with pytest.raises(DecodeError, match=f"field {key}: the field is missing"):
                    cls.from_json(node, version)
            node[key] = original


@given(st.data())
@settings(max_examples=examples(200))
@pytest.mark.slow
def test_drawn_json_is_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    cls = class_of(name)
    version = data.draw(st.sampled_from(cls.VALID_VERSIONS))
    node = instance(cls, version, Fill.FULL, unknown_tags=False).to_json(version)
    found = list(places(layout(union()[name], version), node))
    if found:
        put(name, version, node, data.draw(st.sampled_from(found)), data.draw(JSON))
    anything: Any = data.draw(JSON)
    with contextlib.suppress(DecodeError):
        cls.from_json(anything, version)


def test_the_class_of_every_message_is_found_by_its_name() -> None:
    assert {class_name(name) for name in NAMES} == {class_of(name).__name__ for name in NAMES}
