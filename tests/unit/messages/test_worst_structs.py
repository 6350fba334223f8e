"""Tests that explaining an error takes at most about twice as many function calls as decoding.

The tests use the structs that take the fewest calls to decode.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from kproto.messages.base import Message
from kproto.schema.explain import explain_decode
from kproto.wire.compiled import __compiled__
from tools.bench.worst_structs import WORST, WorstStruct, message_of, worst_classes

#: Additional calls to explain a struct, besides those for its fields.
OF_A_STRUCT = 3


def calls(act: Callable[[], object]) -> int:
    """Calls `act`; returns the number of calls of Python functions during it."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(scope="module")
def classes() -> Iterator[dict[WorstStruct, type[Message]]]:
    with worst_classes() as made:
        yield made


@pytest.mark.skipif(__compiled__, reason="compiled functions report no calls")
@pytest.mark.parametrize("worst", WORST, ids=lambda worst: worst.name)
def test_to_explain_takes_at_most_twice_the_calls(
    classes: dict[WorstStruct, type[Message]], worst: WorstStruct
) -> None:
    cls, data = classes[worst], message_of(worst, 4000)
    spec = cls._definition()
    explain_decode(spec, 0, b"")  # builds the layout, which is cached
    reading = calls(lambda: cls.decode(data, 0))
    found = []
    explaining = calls(lambda: found.append(explain_decode(spec, 0, data + b"!")))
    assert found[0] is not None
    elements = len(data) // len(worst.element)
    assert explaining <= 2 * reading + OF_A_STRUCT * elements + 100


@pytest.mark.parametrize("worst", WORST, ids=lambda worst: worst.name)
def test_a_fault_in_a_run_of_fields_is_told_of_its_field(
    classes: dict[WorstStruct, type[Message]], worst: WorstStruct
) -> None:
    """The data ends before one field of the last element; the error must name this field."""
    cls, width = classes[worst], len(worst.element)
    data = message_of(worst, 3 * width)
    begin = 1 if worst.flexible else 4
    size = (width - worst.flexible) // len(worst.types)
    for index in range(len(worst.types)):
        broken = data[: begin + 2 * width + index * size]
        if len(broken) < begin + 3 * 1:  # the element count itself is refused
            continue
        fault = explain_decode(cls._definition(), 0, broken)
        assert fault is not None
        assert (fault.field, fault.offset) == (f"items[2].f{index}", len(broken))
