"""Tests the table of normative statements: its tests exist, and the page has all its rows."""

from __future__ import annotations

from .normative import PAGE, existing_tests, page, read_table

LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "OPTIONAL", "REQUIRED"}


def test_every_statement_is_complete() -> None:
    table = read_table()
    for statement in table.statements:
        assert statement.tests, statement
        assert statement.of in table.documents, statement
        assert statement.level in LEVELS, statement
        assert statement.clause, statement
        assert statement.says.endswith("."), statement
        assert "|" not in statement.says + statement.clause, statement


def test_every_document_has_statements() -> None:
    table = read_table()
    assert {statement.of for statement in table.statements} == set(table.documents)


def test_statements_are_unique() -> None:
    said = [(each.of, each.clause, each.says) for each in read_table().statements]
    assert len(said) == len(set(said))


def test_every_named_test_exists() -> None:
    named = {test for statement in read_table().statements for test in statement.tests}
    assert named - existing_tests() == set()


def test_the_page_is_made_of_the_table() -> None:
    assert PAGE.read_text() == page(read_table())
