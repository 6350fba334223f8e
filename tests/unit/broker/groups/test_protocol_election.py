"""Tests which protocol a generation gets by the votes of its members."""

from __future__ import annotations

import pytest

from kproto.broker.groups.classic_members import select_protocol


@pytest.mark.parametrize(
    ("members", "elected"),
    [
        ([["range"]], "range"),
        ([["sticky", "range"]], "sticky"),
        ([["sticky", "range"], ["range"]], "range"),
        ([["a", "b"], ["b", "a"], ["b", "a"]], "b"),
        ([["x", "a", "b"], ["y", "b", "a"], ["z", "b", "a"]], "b"),
        ([["range", "range"], ["range"]], "range"),
    ],
)
def test_most_voted_common_protocol_is_selected(members: list[list[str]], elected: str) -> None:
    assert select_protocol(members) == elected


def test_no_common_protocol_raises() -> None:
    cases: list[list[list[str]]] = [[], [["a"], ["b"]], [[]]]
    for members in cases:
        with pytest.raises(ValueError, match="empty"):
            select_protocol(members)
