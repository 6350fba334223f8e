"""Tests the translation of java.util.regex to Python's `re`: meanings, and refused constructs.

`tests/reference/test_regexes.py` compares random expressions with Java itself.
"""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_pipeline.spark.options.java_regex import MAX_DEPTH, JavaRegexError, python_regex

from tests.support.java_regexes import java_regex, topic_names


@pytest.mark.parametrize(
    ("expression", "found", "others"),
    [
        ("orders", ["orders", "my-orders-2"], ["Orders"]),
        ("^orders$", ["orders"], ["my-orders", "orders-2"]),
        (r"a$", ["a", "ba", "a\n", "a\r\n", "a\r"], ["ab", "a\nb", "a\n\n"]),
        (r"a\Z", ["a", "a\n"], ["a\nb"]),
        (r"a\z", ["a"], ["a\n"]),
        (r"(?d)a$", ["a", "a\n"], ["a\r\n"]),
        (r"(?m)^b", ["b", "a\nb", "a\rb"], ["ab"]),
        (r"a.b", ["a-b"], ["a\nb", "a\rb"]),
        (r"(?d)a.b", ["a\rb"], ["a\nb"]),
        (r"(?s)a.b", ["a\nb", "a\rb"], ["ab"]),
        ("^[a-z&&[^x]]$", ["a", "y"], ["x", "A", "&", "["]),
        ("^[a-z&&def]$", ["d", "e"], ["a", "&"]),
        ("^[a-z&&[^bc]&&[^d]]$", ["a", "e"], ["b", "d"]),
        ("^[[a-c][x]]$", ["a", "c", "x"], ["[", "]", "d"]),
        ("^[^[x]]$", ["a", "[", "]"], ["x"]),
        ("^[^a[b]]$", ["c", "["], ["a", "b"]),
        ("^[^a-z&&c]$", ["-", "a", "d"], ["c"]),
        ("^[]a]$", ["]", "a"], ["b"]),
        ("^[a&b]$", ["a", "&", "b"], ["c"]),
        (r"^[\w&&[^\d]]+$", ["ab_"], ["a1", "a-"]),
        (r"^[\Qa-c\E]$", ["a", "-", "c"], ["b"]),
        (r"^\w$", ["a", "_", "0"], ["-", ".", "\u00e4"]),
        (r"^\h$", [" ", "\t"], ["\n", "h"]),
        (r"^\v$", ["\n", "\v"], ["v", " "]),
        (r"^\R$", ["\n", "\r\n", "\r"], ["R"]),
        (r"^\Qa.b\E+$", ["a.b", "a.bb"], ["axb", "a.ba.b"]),
        (r"\Qa.", ["a."], ["ab"]),
        (r"^\x41\x{62}\u0063\0104\cA$", ["AbcD\x01"], ["abcD\x01"]),
        (r"^\012$", ["\n"], ["12", "\x0112"]),
        (r"^\p{Alpha}\p{javaLowerCase}\P{L}\pN$", ["Aa-1"], ["aAx1"]),
        (r"^[\p{Lu}\p{Punct}]$", ["A", "-", "$"], ["a", "1"]),
        (r"^\p{IsLatin}\p{InBasicLatin}\p{gc=Nd}$", ["a-1"], ["1-1"]),
        (r"(?U)^\p{Punct}$", ["-"], ["$"]),
        ("^a(?i)b|c$", ["ab", "aB", "C"], ["Ab"]),
        ("^(a(?i)b)c$", ["aBc"], ["aBC", "ABc"]),
        ("^(?i:A-b)c$", ["a-Bc"], ["a-BC"]),
        ("(?i)^[A-C]$", ["b", "B"], ["d"]),
        ("(?x)^a b # c\n$", ["ab"], ["a b", "abc"]),
        ("^a++b$", ["ab", "aab"], ["b"]),
        ("a++a", [], ["a", "aaa"]),
        ("^(?>a|ab)c$", ["ac"], ["abc"]),
        ("^a{2}+$", ["aa"], ["a", "aaa"]),
        ("^(?<name>a|b)-\\k<name>$", ["a-a", "b-b"], ["a-b"]),
        (r"^(a)(b)\2\1$", ["abba"], ["abab"]),
        (r"^(a)\11$", ["aa1"], ["aa"]),
        ("(?<=a|bc)d", ["ad", "bcd"], ["cd"]),
        ("(?<!a|bc)d", ["cd", "d"], ["ad", "bcd"]),
        ("a(?=b)(?!bc)", ["ab", "abd"], ["abc", "ac"]),
        (r"\bb\b", ["b", "a-b"], ["ab", "b_"]),
        (r"a\Bb", ["ab"], ["a-b"]),
        ("}|]", ["}", "]"], ["a"]),
        ("a||b", ["", "x"], []),
    ],
)
def test_expression_has_the_meaning_of_java(
    expression: str, found: list[str], others: list[str]
) -> None:
    translated = re.compile(python_regex(expression))
    assert [it for it in found if not translated.search(it)] == []
    assert [it for it in others if translated.search(it)] == []


@pytest.mark.parametrize(
    ("expression", "construct", "index"),
    [
        ("ab(", "(", 2),
        ("a)", ")", 1),
        ("a[b", "[", 1),
        ("*a", "*", 0),
        ("a**", "*", 2),
        ("a{2}{3}", "{", 4),
        ("a{", "{", 1),
        ("a{3,2}", "{3,2}", 1),
        ("x(?P<n>a)", "(?P", 1),
        ("x(?<n-1>a)", "(?<n-", 1),
        ("(?<n>a)(?<n>b)", "(?<n>", 7),
        ("(?z)", "(?z", 0),
        ("(?c)a", "(?c", 0),
        (r"\1(a)", r"\1", 0),
        (r"(a\1)", r"\1", 2),
        (r"\k<n>", r"\k<n>", 0),
        (r"a\G", r"\G", 1),
        (r"a\X", r"\X", 1),
        (r"a\b{g}", r"\b{", 1),
        (r"a\N{DIGIT ONE}", r"\N", 1),
        (r"a\y", r"\y", 1),
        (r"a\E", r"\E", 1),
        ("a\\", "\\", 1),
        (r"a\p{Greek}", r"\p{Greek}", 1),
        (r"a\p{IsGreek}", r"\p{IsGreek}", 1),
        (r"a\p{L", r"\p{L", 1),
        (r"(?i)\p{Lower}", r"\p{Lower}", 4),
        ("(?iu)\u212a", "\u212a", 5),
        (r"a\x4", r"\x4", 1),
        (r"a\0", r"\0", 1),
        (r"a\x{110000}", r"\x{110000}", 1),
        ("(?<=a*)b", "(?<=", 0),
        ("(?<!ab+)b", "(?<!", 0),
        ("[z-a]", "z-a", 1),
        (r"[a-\d]", r"a-\d", 1),
        (r"[\b]", r"\b", 1),
        ("[&&a]", "[&&", 0),
        ("[a&&]", "[a&&]", 0),
        ("[a&&[b]&c]", "&", 7),
        ("[a&&[b]c&&d]", "[a&&[b]c", 0),
        ("(?x)[a b]", " ", 6),
        ("(?x)( ?:a)", "( ", 4),
        ("[^]", "[", 0),
        ("a\0", "\0", 1),
    ],
)
def test_refused_construct_is_named_with_its_index(
    expression: str, construct: str, index: int
) -> None:
    with pytest.raises(JavaRegexError) as caught:
        python_regex(expression)
    assert (caught.value.construct, caught.value.index) == (construct, index)
    assert repr(construct) in str(caught.value)
    assert f"near index {index}" in str(caught.value)


@pytest.mark.parametrize("opening", ["(", "(?:", "(?=", "["])
def test_deep_nesting_is_refused(opening: str) -> None:
    closing = "]" if opening == "[" else ")"
    for depth in (MAX_DEPTH, MAX_DEPTH + 1, 100_000):
        text = opening * depth + "a" + closing * depth
        if depth == MAX_DEPTH:
            assert re.compile(python_regex(text)).search("a")
        else:
            with pytest.raises(JavaRegexError, match="deep"):
                python_regex(text)


def translation(expression: str) -> str | JavaRegexError:
    try:
        return python_regex(expression)
    except JavaRegexError as error:
        return error


@given(
    st.text("ab1-.*+?|()[]^$\\{}&,<>=!:QEdpLRikx \n#", max_size=14), st.text("ab1-._", max_size=6)
)
def test_any_text_is_translated_or_refused(expression: str, name: str) -> None:
    translated = translation(expression)
    if isinstance(translated, JavaRegexError):
        assert 0 <= translated.index <= len(expression)
    else:
        re.compile(translated).search(name)


def test_many_random_expressions_are_translated() -> None:
    chance = random.Random(5)
    texts = topic_names(chance, 5)
    accepted = 0
    for _ in range(2000):
        try:
            translated = re.compile(python_regex(java_regex(chance)))
        except JavaRegexError:
            continue
        accepted += 1
        for text in texts:
            translated.search(text)
    assert accepted > 300
