"""Tests that exactly the sentences, words and names that break a rule are found."""

from __future__ import annotations

import dataclasses

import pytest

from tools.language.rules import Finding, check_file, load_rules

RULES = load_rules()


def rules_broken(path: str, source: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.rule) for finding in check_file(RULES, path, source)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Who asks gets the same answer.",
        "It is sent. Whoever waits gets the error.",
        "It is sent.\nWhat is left is dropped.",
        'It says "done". Where it fails, the connection closes.',
        "| partition | who leads it |",
        "- nothing else\n- what is left",
        "## Where a change belongs",
        "Nobody leads the partition.",
        "Which broker is next decides `choosing`.",
        "One that fails is sent again.",
        "One is enough.",
        "No one waits.",
        "(Who asks first is served.)",
        "**What it costs.** A request.",
    ],
)
def test_opening_without_a_noun_is_found(sentence: str) -> None:
    assert "opening" in [rule for _, rule in rules_broken("a.md", sentence)]


@pytest.mark.parametrize(
    "sentence",
    [
        "The member that leads assigns partitions.",
        "## What is a fetch session?",
        "Where do positions come from? The group has committed them.",
        "One record is sent twice.",
        "One `FetchRequest` asks for all of them.",
        "A caller decides what is sent, and where.",
        "`what` is an argument.",
        "Whole batches are sent.",
        "    who = 1",
    ],
)
def test_opening_with_a_noun_a_question_and_code_are_right(sentence: str) -> None:
    assert rules_broken("a.md", f"Before.\n\n{sentence}") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Records in hand are not done.",
        "A record that is handed out counts.",
        "It goes by the table.",
        "The batch is opened when its turn comes.",
        "The room knows no clock.",
        "The user is told of it.",
        "The member gives up partitions.",
        "All but for the last.",
        "The broker answers somebody else.",
        "The member reads what he has.",
        "A request is under way.",
    ],
)
def test_private_words_are_found_in_prose_of_all_kinds(sentence: str) -> None:
    for path, source in {
        "a.md": sentence,
        "kproto/a.py": f'"""{sentence}"""\n',
        "kproto/b.py": f"x = 1  # {sentence}\n",
        "kproto/c.py": f"raise ValueError('{sentence}')\n",
        "tests/d.py": f"# {sentence}\n",
    }.items():
        assert rules_broken(path, source) == [(1, "word")]


@pytest.mark.parametrize(
    "sentence",
    [
        "It goes by default to the leader.",
        "There is no room for another batch.",
        "Typefaces, handouts and theses.",
        "The batch is told apart `in hand`.",
    ],
)
def test_common_words_are_right(sentence: str) -> None:
    found = rules_broken("a.md", sentence)
    assert found == ([(1, "word")] if "told" in sentence else [])


def test_strings_of_tests_are_data() -> None:
    assert rules_broken("tests/unit/a.py", "x = 'nobody is here'\n") == []


def test_finding_has_line_text_and_advice() -> None:
    source = '"""Reads records.\n\nThe batch `a` is read. Who asks `b` gets it.\n"""\n'
    (finding,) = check_file(RULES, "kproto/a.py", source)
    assert finding == Finding(
        "kproto/a.py", 3, "opening", "Who asks `b` gets it.", RULES.openings[0].better
    )
    assert str(finding).startswith("kproto/a.py:3: opening: “Who asks `b` gets it.”: name the")


FUNCTION = 'class A:\n    {0}def {1}(self):\n        """{2}"""\n'


@pytest.mark.parametrize(
    ("decorator", "name", "docstring", "found"),
    [
        ("", "records", "The records.", True),
        ("async ", "records", "Whether it is open.", True),
        ("", "records", "True if it is open.", True),
        ("", "records", "Returns the records.", False),
        ("", "records", "Send the records.", False),
        ("", "_records", "The records.", False),
        ("@property\n    ", "records", "The records.", False),
        ("@cached_property\n    ", "records", "The records.", False),
    ],
)
def test_docstring_of_a_public_function_begins_with_a_verb(
    decorator: str, name: str, docstring: str, found: bool
) -> None:
    source = FUNCTION.format(decorator, name, docstring)
    line = 3 + decorator.count("\n")
    assert rules_broken("kproto/a.py", source) == ([(line, "docstring")] if found else [])


def test_names_of_tests_have_a_subject() -> None:
    source = "def test_what_is_read(): pass\ndef test_whole_batches_are_read(): pass\n"
    assert rules_broken("tests/unit/test_a.py", source) == [(1, "test-name")]


def test_retired_names_are_found_in_code_and_prose() -> None:
    rules = dataclasses.replace(RULES, retired={"HandingOut": "FetchBuffer"})
    source = "from .fetch import HandingOut\n# HandingOut holds\nHandingOuts = 1\n"
    found = check_file(rules, "kproto/a.py", source)
    assert [(each.line, each.rule, each.advice) for each in found] == [
        (1, "retired", "is now FetchBuffer"),
        (2, "retired", "is now FetchBuffer"),
    ]
    assert [each.line for each in check_file(rules, "a.md", "\n`HandingOut` holds")] == [2]
