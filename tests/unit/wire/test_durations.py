"""Tests the parser of ISO-8601 durations, with the cases of Java's Duration.parse."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kproto.wire.durations import parse_duration

VALID = {
    "PT20.345S": timedelta(seconds=20, milliseconds=345),
    "PT15M": timedelta(minutes=15),
    "PT10H": timedelta(hours=10),
    "P2D": timedelta(days=2),
    "P2DT3H4M": timedelta(days=2, hours=3, minutes=4),
    "PT-6H3M": timedelta(hours=-6, minutes=3),
    "-PT6H3M": timedelta(hours=-6, minutes=-3),
    "-PT-6H+3M": timedelta(hours=6, minutes=-3),
    "pt1h": timedelta(hours=1),
    "PT-0.5S": timedelta(milliseconds=-500),
    "PT1,5S": timedelta(milliseconds=1500),
    "PT1.S": timedelta(seconds=1),
    "PT0.1234567S": timedelta(microseconds=123_456),
    "PT0S": timedelta(),
}


@pytest.mark.parametrize("text", VALID)
def test_durations_of_java_are_parsed(text: str) -> None:
    assert parse_duration(text) == VALID[text]


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "1H", "P1H", "PT1D", "P1W", "P1M", "P1Y", "P2DT", "PT1H ", "PT.5S"),
        *("PT1M1H", "PT1.5H", "PT１H", "PT0.1234567890S", f"P{'9' * 30}D", "P9999999999D"),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
