"""Tests `dump_json`: its cached encoder and its slower fallback give equal output and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEventError
from kproto_cloudevents.values import json_text
from kproto_cloudevents.values.json_text import dump_json

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
_VALUES = st.recursive(
    _PLAIN | st.binary(max_size=2) | st.sets(st.integers(), max_size=1),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
        | st.dictionaries(st.tuples(st.integers()), inner, max_size=1)
        | st.tuples(inner, inner)
    ),
)


def _outcome(value: Any) -> object:
    try:
        return dump_json(value)
    except CloudEventError as error:
        return str(error), error.where, error.clauses


@given(_VALUES)
def test_both_ways_agree(value: Any) -> None:
    found = _outcome(value)

    def gives_up(_value: Any, _level: int) -> Any:
        raise TypeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_encode", gives_up)
        assert _outcome(value) == found


def test_a_circle_is_told_and_forgotten() -> None:
    circle: list[Any] = ["x" * 1000]
    circle.append({"a": circle})
    for _ in range(2):
        with pytest.raises(CloudEventError, match="Circular reference detected"):
            dump_json(circle)
        assert not json_text._being_written
    circle[1] = [circle[0], (1, 2), 1.5]
    assert json.loads(dump_json([circle, circle])) == [json.loads(dump_json(circle))] * 2


def test_an_error_of_a_value_of_ones_own_leaves_nothing_wrong_behind() -> None:
    class Broken(dict[str, int]):
        def items(self) -> Any:
            raise ZeroDivisionError

    outer: list[Any] = [Broken(a=1)]
    with pytest.raises(ZeroDivisionError):
        dump_json(outer)
    outer[0] = 1
    assert dump_json(outer) == "[1]"
