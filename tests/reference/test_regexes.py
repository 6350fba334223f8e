"""Tests the translated expressions of Spark's option, and the broker's RE2, against Java's engines.

java.util.regex and re2j get the same random expressions as kproto. kproto may refuse an expression
that Java accepts. kproto must not accept an expression that Java refuses, and an accepted
expression must match the same texts as in Java.
"""

from __future__ import annotations

import random
import re

import pytest
from kproto_pipeline.spark.options.java_classes import _PROPERTIES, _UNICODE
from kproto_pipeline.spark.options.java_regex import JavaRegexError, python_regex

from kproto.broker.groups.consumer.re2 import InvalidExpressionError, Re2Pattern
from tests.support.java_regexes import JAVA_ATOMS, java_regex, re2_regex, topic_names
from tools.reference import KafkaJavaProgram
from tools.reference.regexes import matches_in_java

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 21
COUNT = 6000

#: The release whose brokers have re2j.
RELEASE = "4.4.0"

ASCII = [chr(code) for code in range(128)]


def translated(expression: str) -> re.Pattern[str] | None:
    try:
        return re.compile(python_regex(expression))
    except JavaRegexError:
        return None


def test_java_expressions_match_the_same_texts(judges: dict[str, KafkaJavaProgram]) -> None:
    chance = random.Random(SEED)
    texts = topic_names(chance, 30)
    expressions = [java_regex(chance) for _ in range(COUNT)]
    same = refused = 0
    found = matches_in_java(judges[RELEASE], "java", expressions, texts)
    for expression, expected in zip(expressions, found, strict=True):
        ours = translated(expression)
        if ours is None:
            refused += expected is not None
            continue
        assert expected is not None, f"Java refuses {expression!r}"
        assert [ours.search(text) is not None for text in texts] == expected, expression
        same += 1
    assert same > COUNT // 8
    assert refused < same


def test_each_class_of_java_has_the_same_ascii_characters(
    judges: dict[str, KafkaJavaProgram],
) -> None:
    names = [*_PROPERTIES, *(f"Is{name}" for name in (*_PROPERTIES, *_UNICODE)), "IsPunct"]
    names += ["IsLatin", "IsCommon", "script=Latn", "sc=Zyyy", "blk=Basic Latin", "gc=L"]
    escapes = [*(rf"\p{{{name}}}" for name in names), *(it for it in JAVA_ATOMS if it[0] == "\\")]
    classes = [it for it in escapes if it not in (r"\1", r"\2", r"\k<n>")]
    inside = [f"[{it}]" for it in classes]
    flags = [f"(?{flag}){it}" for flag in ("i", "U", "iu", "s", "d", "m") for it in classes]
    expressions = [*classes, *inside, *flags, "[^a]", "(?i)[^a-c]", "(?i)[A-C]", "(?i)[@-b]", "."]
    found = matches_in_java(judges[RELEASE], "java", expressions, ASCII)
    for expression, expected in zip(expressions, found, strict=True):
        ours = translated(expression)
        if ours is not None:
            assert [ours.search(text) is not None for text in ASCII] == expected, expression
    assert all(translated(rf"\p{{{name}}}") for name in names)


def test_re2_expressions_match_the_same_names(judges: dict[str, KafkaJavaProgram]) -> None:
    chance = random.Random(SEED)
    texts = [text for text in topic_names(chance, 30) if re.fullmatch("[a-zA-Z0-9._-]+", text)]
    expressions = [re2_regex(chance) for _ in range(COUNT)]
    same = 0
    found = matches_in_java(judges[RELEASE], "re2j", expressions, texts)
    for expression, expected in zip(expressions, found, strict=True):
        try:
            ours = Re2Pattern(expression)
        except InvalidExpressionError:
            assert expected is None, f"re2j accepts {expression!r}"
            continue
        assert expected is not None, f"re2j refuses {expression!r}"
        assert [ours.matches(text) for text in texts] == expected, expression
        same += 1
    assert same > COUNT // 4
