"""Tests that decoding any bytes takes memory and work in proportion to their number."""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kproto import wire
from kproto.messages.base import Message
from kproto.schema import explain
from kproto.wire import reading
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import DecodeError
from kproto.wire.limits import MAX_TAGGED_FIELDS
from tests.support.pages import page_text
from tests.support.selection import rest_slow

from .catalogue import FEW_EVERYDAY, class_of, shape_of
from .worst_shapes import shapes, tagged

#: The most memory in bytes per byte read, which docs/how-to/messages.md promises.
PROMISED = 100

#: The memory of a message without elements: a few objects, and spare capacity of lists.
FIXED = 6_000

ELEMENTS = 400


def peak(cls: type[Message], version: int, data: bytes) -> int:
    """Returns the peak memory in bytes while the message is decoded."""
    cls.decode(data, version)  # fills the caches before the measurement
    tracemalloc.start()
    try:
        cls.decode(data, version)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FEW_EVERYDAY)
def test_the_worst_elements_of_each_array_keep_the_memory_bound(name: str) -> None:
    cls = class_of(name)
    version = cls.VALID_VERSIONS[-1]
    for shape in shapes(shape_of(name, version), ELEMENTS):
        used = peak(cls, version, shape.data)
        assert used - FIXED <= PROMISED * len(shape.data), (
            f"{used / len(shape.data):.0f} bytes for each byte: {shape.path}, {shape.variant}"
        )


def test_the_worst_elements_are_as_bad_as_documented() -> None:
    """Checks that the documented memory bound is not far above the memory of the worst elements."""
    cls = class_of("StreamsGroupCurrentMemberAssignmentValue")
    found = {
        shape.variant: peak(cls, 0, shape.data) / len(shape.data)
        for shape in shapes(shape_of(cls.__name__, 0), 2000)
        if shape.path == "active_tasks"
    }
    assert found["least"] > 40
    assert found["unknown tag"] > 40


@pytest.mark.parametrize("count", [1, 127, 128, 5000, MAX_TAGGED_FIELDS])
def test_tags_keep_the_memory_bound(count: int) -> None:
    cls = class_of("HeartbeatRequest")
    data = tagged(shape_of("HeartbeatRequest", 4), count)
    assert peak(cls, 4, data) - FIXED <= PROMISED * len(data)


#: Counts only lines of kproto: garbage collection may run lines of the test runner.
KPROTO = str(Path(wire.__file__).parents[1])


def steps(act: Callable[[], object]) -> int:
    """Returns how many lines of kproto's code `act` executes."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(KPROTO):
            return None
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


#: Compiled functions execute no lines that a trace function could count.
interpreted = pytest.mark.skipif(__compiled__, reason="compiled functions execute no lines")

#: Small structs, nested structs, structs with a key, strings and numbers.
MEASURED = {
    "MetadataRequest": 12,
    "ProduceRequest": 9,
    "OffsetFetchRequest": 8,
    "DescribeGroupsRequest": 6,
    "CreatePartitionsRequest": 3,
    "MetadataResponse": 12,
    "FetchResponse": 16,
    "StreamsGroupCurrentMemberAssignmentValue": 0,
}


@interpreted
@pytest.mark.parametrize("name", rest_slow(MEASURED, 0, 4))
def test_twice_the_elements_take_at_most_twice_the_work(name: str) -> None:
    cls, version = class_of(name), MEASURED[name]
    layout = shape_of(name, version)
    for once, twice in zip(shapes(layout, 200), shapes(layout, 400), strict=True):
        first = steps(lambda data=once.data: cls.decode(data, version))  # type: ignore[misc]
        second = steps(lambda data=twice.data: cls.decode(data, version))  # type: ignore[misc]
        assert second <= 2 * first + 10, once.path


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MEASURED)
def test_explaining_a_fault_after_twice_the_elements_takes_at_most_twice_the_work(
    name: str,
) -> None:
    cls, version = class_of(name), MEASURED[name]
    layout = shape_of(name, version)

    def fail(data: bytes) -> None:
        with pytest.raises(DecodeError):
            cls.decode(data[:-1], version)

    fail(next(shapes(layout, 10)).data)  # loads the modules that explain an error
    for once, twice in zip(shapes(layout, 200), shapes(layout, 400), strict=True):
        first = steps(lambda data=once.data: fail(data))  # type: ignore[misc]
        second = steps(lambda data=twice.data: fail(data))  # type: ignore[misc]
        assert second <= 2 * first + 10, once.path


def fails(cls: type[Message], version: int, data: bytes) -> None:
    with pytest.raises(DecodeError):
        cls.decode(data, version)


#: The limit of executed lines that explain an error, per executed line that decodes. For an array
#: of numbers, one line decodes and ten lines explain an error.
LINES = 12


@interpreted
@pytest.mark.parametrize("name", rest_slow(MEASURED, 0, 4))
def test_explaining_takes_work_in_proportion_to_decoding(name: str) -> None:
    cls, version = class_of(name), MEASURED[name]
    fails(cls, version, b"")  # loads the modules that explain an error
    for shape in shapes(shape_of(name, version), 400):
        reading = steps(lambda data=shape.data: cls.decode(data, version))  # type: ignore[misc]
        failing = steps(lambda data=shape.data + b"x": fails(cls, version, data))  # type: ignore[misc]
        assert failing <= (1 + LINES) * reading + 1000, f"{shape.path}, {shape.variant}"


@pytest.mark.parametrize("name", rest_slow(sorted(MEASURED, reverse=True), 0, 2))
def test_explaining_takes_no_more_memory_than_decoding(name: str) -> None:
    cls, version = class_of(name), MEASURED[name]
    fails(cls, version, b"")
    for shape in shapes(shape_of(name, version), 2000):
        used = peak(cls, version, shape.data)
        broken = shape.data + b"x"
        tracemalloc.start()
        try:
            fails(cls, version, broken)
            assert tracemalloc.get_traced_memory()[1] <= used + 40_000, shape.path
        finally:
            tracemalloc.stop()


def test_decoded_elements_are_released_before_the_error_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_use: list[int] = []

    def measure(*_: object, **__: object) -> None:
        in_use.append(tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr(explain, "explain_decode", measure)
    cls = class_of("MetadataRequest")
    data = next(shapes(shape_of("MetadataRequest", 12), 5000)).data
    both = data + b"x", data[:-1]
    tracemalloc.start()
    try:
        for broken in both:
            fails(cls, 12, broken)
    finally:
        tracemalloc.stop()
    assert len(in_use) == 2
    assert max(in_use) < 100_000  # 5,000 topics would take about 400 kB


def steps_for_tags(count: int) -> int:
    data = tagged(shape_of("HeartbeatRequest", 4), count)
    return steps(lambda: class_of("HeartbeatRequest").decode(data, 4))


def test_tags_take_linear_work() -> None:
    """All tags are 128 or more, so that each has the same encoded length and takes equal steps."""
    first, second, third = (steps_for_tags(count) for count in (1000, 2000, 3000))
    assert third - second == second - first


@interpreted
def test_nonlinear_work_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reading.read_tags
    linear = steps_for_tags(1000)

    def read_once_for_each(data: bytes, pos: int) -> Any:
        count, _ = reading.read_uvarint(data, pos)
        for number in range(count // 100):
            for _ in range(number):
                reading.read_uvarint(data, pos)
        return read(data, pos)

    monkeypatch.setattr(reading, "read_tags", read_once_for_each)
    first, second, third = (steps_for_tags(count) for count in (1000, 2000, 3000))
    assert first > linear
    assert third - second > second - first


def test_the_memory_bound_is_the_documented_bound() -> None:
    text = page_text("docs/how-to/messages.md")
    promised = re.search(r"at most (\d+) bytes of memory for each byte", " ".join(text.split()))
    assert promised is not None
    assert int(promised[1]) == PROMISED
