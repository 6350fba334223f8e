"""Tests parsing offsets in options: earliest, latest or JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.options.offset_spec import (
    EARLIEST,
    LATEST,
    parse_offset_spec,
)

from kproto.wire.errors import ConfigurationError


def test_words_and_json_are_parsed() -> None:
    assert parse_offset_spec("startingOffsets", "Earliest", refused="latest") == EARLIEST
    assert parse_offset_spec("endingOffsets", "latest", refused="earliest") == LATEST
    text = '{"a": {"0": 23, "1": -2}, "b": {"0": 0}}'
    assert parse_offset_spec("startingOffsets", text, refused="latest") == {
        ("a", 0): 23,
        ("a", 1): EARLIEST,
        ("b", 0): 0,
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("latest", "cannot be 'latest' in a batch read"),
        ("soonest", "must be 'earliest', 'latest' or JSON"),
        ("[1]", "must be 'earliest', 'latest' or JSON"),
        ("{", "must be 'earliest', 'latest' or JSON"),
        ("{}", "names no partition"),
        ('{"a": 3}', "topic 'a' needs its partitions"),
        ('{"a": {"x": 3}}', "'x' of topic 'a' is no partition number"),
        ('{"a": {"0": "3"}}', "a-0 has '3'"),
        ('{"a": {"0": true}}', "a-0 has True"),
        ('{"a": {"0": -3}}', "a-0 has -3"),
        ('{"a": {"0": 0, "1": 0, "0": 1}}', "names '0' twice"),
        ('{"a": {"0": 0}, "a": {"0": 0}}', "names 'a' twice"),
        ('{"a": {"0": 0, "00": 1}}', "'00' of topic 'a' is no partition number"),
        pytest.param('{"a": {"' + "9" * 5_000 + '": 1}}', "no partition number", id="long"),
        pytest.param("[" * 100_000, "must be 'earliest', 'latest' or JSON", id="deep"),
        ('{"a": {"0": -1}}', r"a-0 cannot be -1 \(latest\)"),
    ],
)
def test_wrong_offset_json_names_option_and_fault(text: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        parse_offset_spec("startingOffsets", text, refused="latest")
    assert str(caught.value).startswith("startingOffsets")


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.dictionaries(st.integers(0, 99), st.integers(-2, 2**62), min_size=1),
        min_size=1,
    )
)
@pytest.mark.slow
def test_offset_json_round_trips(offsets: dict[str, dict[int, int]]) -> None:
    usable = {
        t: {p: max(o, 0) if o == -1 else o for p, o in of.items()} for t, of in offsets.items()
    }
    parsed = parse_offset_spec("startingOffsets", json.dumps(usable), refused="latest")
    assert parsed == {(t, p): o for t, of in usable.items() for p, o in of.items()}
