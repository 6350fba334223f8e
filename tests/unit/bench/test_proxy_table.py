"""Tests the table of the proxy benchmark: medians without the proxy, ratios with the proxy."""

from __future__ import annotations

from tools.bench.proxy import DIRECT, WAYS, WORKS, table


def test_ratios_are_those_within_a_turn() -> None:
    turns = [
        {DIRECT: 1e-6, **dict.fromkeys(WAYS, 2e-6)},
        {DIRECT: 4e-6, **dict.fromkeys(WAYS, 8e-6)},
        {DIRECT: 2e-6, **dict.fromkeys(WAYS, 2e-6)},
    ]
    head, _, *lines = table({work.name: turns for work in WORKS})
    assert head == "|  | directly | proxy -q | proxy, a line a message | proxy -q --record |"
    for work, line in zip(WORKS, lines, strict=True):
        ways = ["2.00 × the time" if work.sends else "0.50"] * len(WAYS)
        middle = "2 µs" if work.sends else "500"
        assert line == "| " + " | ".join([work.name, middle, *ways]) + " |"
