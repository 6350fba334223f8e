"""Tests regex subscriptions: RE2 syntax, when topics are matched, and topic authorization."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.groups.consumer.re2 import InvalidExpressionError, Re2Pattern
from kproto.broker.groups.consumer.regex_resolution import ResolvedRegex, needs_regex_refresh
from tests.unit.broker.groups.classic_group_driver import error_of

from .consumer_group_driver import ConsumerPlay


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", "Orders"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("(?i)ORDERS", ["orders", "Orders"], ["order"]),
        ("a(?i)b|c", ["ab", "aB", "c", "C"], ["AB"]),
        ("(?i:a)b", ["Ab", "ab"], ["aB"]),
        ("[a-c]+|x{2,3}", ["abc", "xx", "xxx"], ["abd", "x", "xxxx"]),
        ("[^a-c]", ["d", "."], ["a"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[[:digit:]x]+", ["1x2"], ["y"]),
        (r"\d+\.\w", ["12.a"], ["12a"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
        (r"^a$|\Ab\z", ["a", "b"], ["ab"]),
        (r"a\b-\bb\B", [], ["a-b"]),
        (r"\x61\x{62}\143", ["abc"], ["abd"]),
        (r"\pL\p{Nd}\P{L}\p{Latin}", ["a1.b"], ["aa.b"]),
        ("(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        ("a{,2}|{", ["a{,2}", "{"], ["aa"]),
        ("a|", ["a", ""], ["b"]),
        ("(a*)*b", ["aaab", "b"], ["a" * 60]),
    ],
)
def test_regex_matches_whole_topic_names(text: str, matching: list[str], others: list[str]) -> None:
    expression = Re2Pattern(text)
    assert [it for it in matching if not expression.matches(it)] == []
    assert [it for it in others if expression.matches(it)] == []


@pytest.mark.parametrize(
    "text",
    [
        "(",
        ")",
        "a)",
        "[",
        "[z-a]",
        "[[:nope:]]",
        "*",
        "a**",
        "a|*",
        "a{2}{3}",
        "a{1001}",
        "a{3,2}",
        "(a{100}){100}",
        r"(a)\1",
        r"\8",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        "(?>a)",
        "(?#a)",
        "(?P=n)",
        "(?P<n>a)(?P<n>b)",
        "a*+",
        "(?z)",
        "\\",
        r"\c",
        r"\Z",
        r"\x{110000}",
        r"\xZ1",
        r"\p{Nope}",
        r"\p{L",
        "(" * 1000 + "a" + ")" * 1000,
    ],
)
def test_invalid_regex_raises(text: str) -> None:
    with pytest.raises(InvalidExpressionError):
        Re2Pattern(text)


@given(st.text(alphabet="ab.*+?|()[]^$\\{},-dpL1:=!<>i", max_size=12), st.text("ab.1-", max_size=6))
def test_any_text_is_parsed_or_raises(text: str, name: str) -> None:
    try:
        expression = Re2Pattern(text)
    except InvalidExpressionError:
        return
    assert expression.matches(name) in (True, False)


KNOWN = {"a": ResolvedRegex(frozenset({"t"}), 3, 1_000)}


@pytest.mark.parametrize(
    ("wanted", "known", "is_new", "version", "timestamp_ms", "expected"),
    [
        pytest.param((), {}, False, 3, 0, False, id="none"),
        pytest.param(("a",), {}, True, 3, 0, True, id="the first"),
        pytest.param(("a",), KNOWN, False, 3, 20_000, False, id="nothing is new"),
        pytest.param(("a",), KNOWN, False, 4, 11_000, False, id="a new topic, too soon"),
        pytest.param(("a",), KNOWN, False, 4, 11_001, True, id="a new topic"),
        pytest.param(("a", "b"), KNOWN, True, 3, 11_000, False, id="a new one, too soon"),
        pytest.param(("a", "b"), KNOWN, False, 3, 11_001, True, id="one that is not known"),
        pytest.param(("a",), KNOWN, False, 3, 61_000, False, id="not long ago"),
        pytest.param(("a",), KNOWN, False, 3, 61_001, True, id="long ago"),
    ],
)
def test_regex_refresh_conditions(
    wanted: tuple[str, ...],
    known: dict[str, ResolvedRegex],
    *,
    is_new: bool,
    version: int,
    timestamp_ms: int,
    expected: bool,
) -> None:
    found = needs_regex_refresh(
        wanted, known, is_new=is_new, version=version, timestamp_ms=timestamp_ms, interval_ms=60_000
    )
    assert found is expected


def test_resolved_topics_are_assigned_at_the_next_heartbeat() -> None:
    play = ConsumerPlay()
    assert play.join("a", topics=None, regex="[tu]") == {}
    assert play.beat("a") == {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1, 2]}
    play.create("w", 1)
    assert play.beat("a", regex="[tuw]") == {}, "what is not looked up matches nothing"
    play.wait(10_001)
    play.own("a")
    assert play.own("a") == {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1, 2], "w": [0]}
    assert list(play.group.persisted.regexes) == ["[tuw]"]


def test_new_topic_matches_regex() -> None:
    play = ConsumerPlay()
    play.join("a", topics=None, regex="w.*")
    play.create("w1", 2)
    play.wait(10_001)
    play.beat("a")
    assert play.beat("a") == {"w1": [0, 1]}
    play.topics.remove(play.topics.named("w1"))
    assert play.beat("a") == {}


def test_undescribable_topics_do_not_match() -> None:
    play = ConsumerPlay()
    play.join("a", topics=None, regex=".", may_describe=lambda name: name == "v")
    assert play.beat("a") == {"v": [0, 1]}


def test_invalid_regex_is_rejected_without_a_change() -> None:
    play = ConsumerPlay()
    invalid = "INVALID_REGULAR_EXPRESSION"
    assert error_of(lambda: play.join("a", topics=None, regex="(?=t)")) == invalid
    assert play.log == []
    play.join("a", "t")
    assert error_of(lambda: play.own("a", regex=r"(t)\1")) == invalid
    assert play.group.members["a"].regex == ""


def test_regex_is_removed_with_its_last_member() -> None:
    play = ConsumerPlay()
    play.join("a", topics=None, regex="t")
    play.join("b", topics=None, regex="t")
    play.share("a", "b")
    play.leave("a")
    assert list(play.group.persisted.regexes) == ["t"]
    play.own("b", regex="", topics=["u"])
    assert list(play.group.persisted.regexes) == []
