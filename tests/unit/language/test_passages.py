"""Tests that prose in Python and Markdown is found with its line; code is ignored."""

from __future__ import annotations

import pytest

from tools.language.passages import Passage, PassageSource, of_markdown, of_python


def found(passages: list[Passage]) -> list[tuple[int, str]]:
    return [(passage.line, " ".join(passage.text.split())) for passage in passages]


def prose(source: str, kind: PassageSource) -> list[tuple[int, str]]:
    return sorted(found([each for each in of_python(source)[0] if each.kind is kind]))


def test_docstrings_of_all_places_are_found_with_their_lines() -> None:
    source = '''"""Of the module."""

class A:
    """Of the class.

    - an item
      that goes on
    - another
    """

    x = 1
    """Of an attribute."""
'''
    assert prose(source, PassageSource.DOCSTRING) == [
        (1, "Of the module."),
        (4, "Of the class."),
        (6, "an item that goes on"),
        (8, "another"),
        (12, "Of an attribute."),
    ]


def test_comments_are_joined_while_they_are_one_block() -> None:
    source = "#: First line\n#: and second.\nx = 1  # beside it\n# after it\n    # indented\n"
    source = source.replace("    # indented\n", "if x:\n    # indented\n    pass\n")
    assert prose(source, PassageSource.COMMENT) == [
        (1, "First line and second."),
        (3, "beside it"),
        (4, "after it"),
        (6, "indented"),
    ]


@pytest.mark.parametrize("directive", ["# noqa: E501", "# type: ignore[misc]", "#!/bin/python"])
def test_directives_are_no_prose(directive: str) -> None:
    assert prose(f"x = 1  {directive}\n", PassageSource.COMMENT) == []


def test_strings_with_three_words_are_prose_and_formatted_parts_are_masked() -> None:
    source = 'raise ValueError(f"the topic {name} is not " "there")\nkind = "two words"\n'
    assert prose(source, PassageSource.STRING) == [(1, "the topic `x` is not there")]


def test_functions_are_returned_whatever_they_stand_in() -> None:
    source = "class A:\n    async def f(self): pass\nif 1:\n    def g(): pass\n"
    assert sorted(each.name for each in of_python(source)[1]) == ["f", "g"]


MARKDOWN = """# A heading
A paragraph
of two lines with `who asks` and a [link](who.md).

    who = "is code"

- an item

    - an inner item, no code

```python
who = 1
```

| a cell | `a|b` cell |
|---|---|
| third | |

<!-- nobody
reads this -->
The end.
"""


def test_blocks_of_markdown_are_found_and_code_is_left_out() -> None:
    assert found(of_markdown(MARKDOWN)) == [
        (1, "A heading"),
        (2, "A paragraph of two lines with `xxx xxxx` and a [link](xxxxxx)."),
        (7, "an item"),
        (9, "an inner item, no code"),
        (15, "a cell"),
        (15, "`xxx` cell"),
        (17, "third"),
        (21, "The end."),
    ]


def test_text_masked_and_raw_have_the_same_length() -> None:
    for passage in of_markdown(MARKDOWN):
        assert len(passage.text) == len(passage.raw)


def test_line_of_a_position_counts_from_the_line_of_the_passage() -> None:
    (passage,) = of_markdown("\none\ntwo three\n")
    assert passage.line_at(passage.text.index("three")) == 3
