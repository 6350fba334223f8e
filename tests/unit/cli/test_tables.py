"""Tests tables of the command line, in a pipe and at the width of a terminal."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kproto.cli import main
from kproto.cli.tables import table_lines
from kproto.cli.text_width import cut, width_of


def test_a_table_leaves_out_columns_that_are_empty() -> None:
    rows = [("a", "", "long text"), ("bb", "", "")]
    assert list(table_lines(("X", "Y", "Z"), rows)) == ["X   Z", "a   long text", "bb"]
    assert list(table_lines(("X",), [], indent="  ")) == []


def test_a_table_keeps_to_the_width_of_a_terminal() -> None:
    rows = [("a", "words " * 12), ("b", "few")]
    assert list(table_lines(("X", "Z"), rows, width=40)) == [
        "X  Z",
        "a  words words words words words words",
        "   words words words words words words",
        "b  few",
    ]
    assert list(table_lines(("X", "Z"), [("a" * 30, "words " * 6)], width=32)) == [
        "X",
        "        Z",
        "a" * 30,
        "        words words words words",
        "        words words",
    ]
    for width in (1, 5, 20, 60, 200):
        for line in table_lines(("NAME", "MEANING"), [("a" * 70, "words " * 9)], width=width):
            assert len(line) <= max(width, 5)


def test_wide_cells_are_wrapped_inside_their_columns() -> None:
    header = ("FIELD", "TYPE", "TAG", "MEANING")
    rows = [("  PreferredReadReplica", "compact []AbortedTransaction", "12", "Replica to use.")]
    assert list(table_lines(header, rows, width=36)) == [
        "FIELD           TYPE             TAG",
        "         MEANING",
        "  Preferred     compact []       12",
        "  ReadReplica   Aborted",
        "                Transaction",
        "         Replica to use.",
    ]


def test_columns_are_aligned_after_wide_characters_and_combining_marks() -> None:
    rows = [("注文", "1"), ("re\u0301sume\u0301", "2"), ("orders", "3")]
    assert list(table_lines(("GROUP", "LAG"), rows)) == [
        "GROUP   LAG",
        "注文    1",
        "re\u0301sume\u0301  2",
        "orders  3",
    ]


def test_wide_characters_are_wrapped_and_cut_at_the_width_of_the_terminal() -> None:
    rows = [("a", "注文" * 20), ("b", "few 注文 words " * 4)]
    lines = list(table_lines(("X", "MEANING"), rows, width=38))
    assert "".join(lines).count("注") == 24
    assert max(map(width_of, lines)) == 37  # the next character is two columns wide
    assert [cut("注文", width) for width in (1, 2, 3, 4)] == ["…", "…", "注…", "注文"]
    assert cut("e\u0301e\u0301", 2) == "e\u0301e\u0301"


#: Names and types of a layout, and text with any white space.
CELLS = st.lists(st.text(st.sampled_from("aB[] -注\u0301"), max_size=30), min_size=4, max_size=4)


@given(st.lists(CELLS, max_size=4), st.integers(1, 100))
@example([["", "", "B" * 12 + " B", ""], ["", "B" * 12, "", "B"], ["B", "", "", ""]], 30)
def test_no_character_of_a_cell_is_lost_if_the_columns_fit(
    rows: list[list[str]], width: int
) -> None:
    """Three columns of 8 characters, and the gaps between them, need 28 characters."""
    lines = list(table_lines(("1", "2", "3", "4"), rows, width=width))
    assert all(width_of(line) <= max(width, 5) for line in lines)
    if width >= 28:
        for letter in "aB[]-注\u0301":
            written = sum(cell.count(letter) for row in rows for cell in row)
            assert "".join(lines).count(letter) == written


def test_layout_keeps_tag_versions_and_default_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["inspect", "FetchResponse", "--version", "17"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = lines[lines.index("") + 1 :]
    assert max(map(len, table)) <= 80
    assert "…" not in "".join(table)
    head = table[0]
    (row,) = (
        line for line in table if line[head.index("FIELD") :].lstrip().startswith("Diverging")
    )
    for column, cell in (("DEFAULT", "{}"), ("TAG", "0"), ("VERSIONS", "12+")):
        assert row[head.index(column) :].split()[0] == cell
