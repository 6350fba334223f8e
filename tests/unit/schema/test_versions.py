"""Tests version ranges: their text, and which versions they contain."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto.schema.versions import MAX_VERSION, NO_VERSIONS, Versions

RANGES = st.one_of(
    st.just(NO_VERSIONS),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(
        lambda ends: Versions(min(ends), max(ends))
    ),
    st.integers(0, 20).map(lambda low: Versions(low, MAX_VERSION)),
)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("none", NO_VERSIONS),
        ("0", Versions(0, 0)),
        ("3", Versions(3, 3)),
        ("1-4", Versions(1, 4)),
        ("2+", Versions(2, MAX_VERSION)),
        ("32766", Versions(32766, 32766)),
    ],
)
def test_ranges_have_a_text(text: str, versions: Versions) -> None:
    assert Versions.parse(text) == versions
    assert str(versions) == text


@given(RANGES)
def test_the_text_of_a_range_round_trips(versions: Versions) -> None:
    assert Versions.parse(str(versions)) == versions


@pytest.mark.parametrize(
    "text",
    ["", " ", "1-", "-1", "+", "1++", "1-2-3", "1 - 2", " 1", "1\n", "a", "1.0", "None", "0x1"],
)
def test_invalid_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no version range: write 3, 1-4, 2\\+ or none"):
        Versions.parse(text)


@pytest.mark.parametrize("text", ["1-2+", "٣", "1_0", "*", "1–2"])
def test_texts_similar_to_ranges_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no version range"):
        Versions.parse(text)


def test_impossible_ranges_are_refused() -> None:
    with pytest.raises(ValueError, match="'4-1' is a reversed version range"):
        Versions.parse("4-1")
    with pytest.raises(ValueError, match="a version is at most 32767"):
        Versions.parse("32768")
    with pytest.raises(ValueError, match="a version is at most 32767"):
        Versions.parse("0-99999999999999999999")


@given(RANGES, RANGES)
def test_ranges_are_sets_of_versions(first: Versions, second: Versions) -> None:
    numbers = range(42)
    in_first = {n for n in numbers if n in first}
    in_second = {n for n in numbers if n in second}
    assert {n for n in numbers if n in first.intersect(second)} == in_first & in_second
    assert first.covers(second) == (in_first >= in_second)
    assert {n for n in numbers if n in first.span(second)} >= in_first | in_second
    assert bool(first) == (not first.empty) == bool(in_first)
    assert len(Versions.single(3)) == 1


def test_ranges_have_iteration_and_length() -> None:
    assert list(Versions.parse("2-4")) == [2, 3, 4]
    assert len(Versions.parse("2-4")) == 3
    assert list(NO_VERSIONS) == []
    assert len(NO_VERSIONS) == 0
    assert Versions.parse("2+").open_ended
    assert not Versions.parse("2-4").open_ended
