"""Tests the plan of generated code: field kinds, default checks, runs of fields, lazy fields."""

from __future__ import annotations

import re
from operator import index
from typing import Any

import pytest
from kproto_codegen.emit import plan as plan_room
from kproto_codegen.emit.plan import FieldPlan, StructPlan, Style, ValueKind, plan_structs

from kproto.messages.base import DEFAULT
from kproto.wire.uuid import ZERO_UUID, Uuid
from kproto.wire.writing import BOOLS, elements

from ..samples import field, spec

NULLABLE: dict[str, Any] = {"nullableVersions": "0+"}
INNER: dict[str, Any] = {"fields": [field("A")]}
#: (field, values equal to the default, other values)
FIELDS: list[tuple[dict[str, Any], list[object], list[object]]] = [
    (field("F", "bool"), [False], [True]),
    (field("F", "bool", default="true"), [True], [False]),
    (field("F", "int32", default="-1"), [-1], [0, 1]),
    (field("F", "float64"), [0.0, 0], [0.5]),
    (field("F", "string"), [""], ["a", None]),
    (field("F", "string", default="null", **NULLABLE), [None], ["", "a"]),
    (field("F", "string", **NULLABLE), [""], ["a", None]),
    (field("F", "uuid"), [ZERO_UUID], [Uuid(bytes(15) + b"a")]),
    (field("F", "uuid", default="AAAAAAAAAAAAAAAAAAAAAQ"), [Uuid(bytes(15) + b"\1")], [ZERO_UUID]),
    (field("F", "bytes"), [b""], [b"a"]),
    (field("F", "[]int32"), [[], ()], [[0]]),
    (field("F", "[]int32", **NULLABLE), [[]], [[0], None]),
    (field("F", "[]int32", default="null", **NULLABLE), [None], [[], [0]]),
    (field("F", "Inner", **INNER), ["default"], ["other"]),
    (field("F", "Inner", **INNER, **NULLABLE), ["default"], ["other", None]),
    (field("F", "Inner", default="null", **INNER, **NULLABLE), [None], ["default", "other"]),
    (
        field("F", "Inner", "1+", tag=0, taggedVersions="1+", **INNER),
        [DEFAULT, "default"],
        ["other"],
    ),
]
NAMES = {"BOOLS": BOOLS, "elements": elements, "index": index, "ZERO_UUID": ZERO_UUID, "Uuid": Uuid}


def planned(node: dict[str, Any], style: Style = Style.BRANCHING) -> tuple[FieldPlan, StructPlan]:
    *_, own = plan_structs(spec(node), style)
    (made,) = own.fields
    return made, own


@pytest.mark.parametrize(("node", "defaults", "others"), FIELDS)
def test_default_tests_and_their_names_are_planned(
    node: dict[str, Any], defaults: list[object], others: list[object]
) -> None:
    plan, _ = planned(node)
    at_default, is_set = plan.default_tests("value")
    needed = {name: NAMES[name] for name in (*plan.test_names, *plan.default_names)}
    if plan.calls_struct_test:
        needed["_is_default_inner"] = lambda value: value == "default"
    for value, wanted in [*((v, True) for v in defaults), *((v, False) for v in others)]:
        names = {**needed, "value": value, "DEFAULT": DEFAULT}
        assert bool(eval(str(at_default), names)) is wanted
        assert bool(eval(str(is_set), names)) is not wanted
    used = set(
        re.findall(r"\b(BOOLS|elements|index|ZERO_UUID|Uuid|_is_default_inner)\b", str(is_set))
    )
    assert used == set(needed)


def test_values_equal_to_a_number_are_no_numbers() -> None:
    _, is_set = planned(field("F", "int32"))[0].default_tests("value")
    with pytest.raises(TypeError):
        eval(str(is_set), {"value": 0.0, "index": index})


@pytest.mark.parametrize(
    ("kind", "value", "element"),
    [
        ("bool", ValueKind.BOOL, ValueKind.BOOL),
        ("float64", ValueKind.NUMBER, ValueKind.NUMBER),
        ("uint16", ValueKind.NUMBER, ValueKind.NUMBER),
        ("uuid", ValueKind.UUID, ValueKind.UUID),
        ("string", ValueKind.STRING, ValueKind.STRING),
        ("bytes", ValueKind.OCTETS, ValueKind.OCTETS),
        ("records", ValueKind.OCTETS, ValueKind.OCTETS),
        ("[]string", ValueKind.ARRAY, ValueKind.STRING),
        ("[]int8", ValueKind.ARRAY, ValueKind.NUMBER),
    ],
)
def test_each_field_has_a_kind(kind: str, value: ValueKind, element: ValueKind) -> None:
    plan, _ = planned(field("F", kind))
    assert (plan.kind, plan.element_kind) == (value, element)


def test_struct_fields_have_a_kind() -> None:
    for name, kind in (("Inner", ValueKind.STRUCT), ("[]Inner", ValueKind.ARRAY)):
        plan, _ = planned(field("F", name, **INNER))
        assert (plan.kind, plan.element_kind) == (kind, ValueKind.STRUCT)


def test_a_struct_is_one_run_in_straight_line_code() -> None:
    node = field("F", "string", "1+")
    assert len(planned(node, Style.STRAIGHT)[1].runs) == 1
    # The field and the section of tagged fields both begin in version 1.
    assert [len(run.items) for run in planned(node)[1].runs] == [2]
    later = field("F", "string", "2+")
    assert len(planned(later, Style.STRAIGHT)[1].runs) == 1
    assert [len(run.items) for run in planned(later)[1].runs] == [1, 1]


@pytest.mark.parametrize(
    ("fields", "even"),
    [
        ([field("A"), field("B", "bool"), field("C", "uuid")], True),
        ([field("A"), field("B", "string", "0")], True),
        ([field("A"), field("B", tag=0, taggedVersions="1+")], True),
        ([field("A", "string")], False),
        ([field("A"), field("B", "[]int32")], False),
        ([field("A", versions="0")], False),
    ],
)
def test_structs_have_a_fixed_size_if_all_fields_have(
    fields: list[dict[str, Any]], even: bool
) -> None:
    node = spec(field("F", "[]Inner", fields=fields))
    inner, own = plan_structs(node, Style.STRAIGHT)
    (run,) = inner.runs
    assert [run.is_fixed_size(forms) for _, forms in run.segments] == [False, even]
    assert inner.of_array
    assert not own.of_array


@pytest.mark.parametrize(
    ("node", "packed"),
    [
        (field("F", "[]int32"), True),
        (field("F", "[]float64"), True),
        (field("F", "[]bool"), False),
        (field("F", "[]uuid"), False),
        (field("F", "[]string"), False),
        (field("F", "int32"), False),
        (field("F", "[]int32", nullableVersions="1+"), False),
        (field("F", "[]int32", tag=0, taggedVersions="1+"), False),
        (field("Range", "[]int32"), False),
    ],
)
def test_integer_arrays_of_uniform_structs_are_packed(
    node: dict[str, Any], packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = spec(field("F", "[]Inner", fields=[field("A"), node]))
    for named in (False, True):
        if named:
            monkeypatch.setattr(plan_room, "UNIFORM_STRUCTS", {(message.name, "Inner")})
        for style in Style:
            inner, _ = plan_structs(message, style)
            _, plan = inner.fields
            found = named and packed and style is not Style.BRANCHING
            assert plan.packed == found
            assert plan.slot.startswith("_") == found
            (run, *_) = inner.runs
            if style is Style.STRAIGHT:
                assert [run.is_uniform(forms) for _, forms in run.segments] == [False, found]


@pytest.mark.parametrize(
    ("node", "style", "lazy"),
    [
        (field("F", "[]int32", "0"), Style.STRAIGHT, True),
        (field("F", "[]int32", "0-1"), Style.STRAIGHT, False),
        (field("F", "[]int32", "0"), Style.BRANCHING, False),
        (field("F", "[]int32", "0", nullableVersions="0"), Style.STRAIGHT, False),
        (field("Range", "[]int32", "0"), Style.STRAIGHT, False),
        (field("F", "int32", "0"), Style.STRAIGHT, False),
    ],
)
def test_arrays_missing_in_flexible_versions_are_lazy_on_the_data_path(
    node: dict[str, Any], style: Style, lazy: bool
) -> None:
    plan, _ = planned(node, style)
    assert plan.lazy == lazy
