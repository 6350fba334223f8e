"""Defines the table of normative statements, and renders it as a documentation page.

`python -m tests.unit.cloudevents.normative` writes docs/evidence/cloudevents.md from normative.toml
in this folder.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "evidence" / "cloudevents.md"

OPENING = """# CloudEvents: the normative statements

This page lists the requirements of the CloudEvents specifications for libraries, in our own words.
For each requirement it names the tests that check `kproto_cloudevents`; the tests are in
`tests/unit/cloudevents/`. The page omits requirements for people (unique ids, encrypted data, how
to define an extension) and for authors of other specifications. The second column has the keyword
of the specification, such as MUST or SHOULD NOT. The statement says what is true if the requirement
is met, also beside MUST NOT and SHOULD NOT. To change this page, change
`tests/unit/cloudevents/normative.toml` and run `python -m tests.unit.cloudevents.normative`.
"""


class Statement(NamedTuple):
    """One normative statement: document, clause, keyword and text, and the tests that check it."""

    of: str
    clause: str
    level: str
    says: str
    tests: tuple[str, ...]


class Table(NamedTuple):
    """The documents by key, and the statements in the order of normative.toml."""

    documents: dict[str, str]
    statements: tuple[Statement, ...]


def read_table() -> Table:
    """Returns the table of normative.toml."""
    held = tomllib.loads((HERE / "normative.toml").read_text())
    statements = tuple(
        Statement(**{**row, "tests": tuple(row["tests"])}) for row in held["statement"]
    )
    return Table(held["documents"], statements)


def existing_tests() -> set[str]:
    """Returns every test in this folder and its subfolders as `file::function`."""
    return {
        f"{path.relative_to(HERE).as_posix()}::{node.name}"
        for path in HERE.rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def page(table: Table) -> str:
    """Returns the documentation page as Markdown."""
    parts = [OPENING]
    for key, title in table.documents.items():
        parts.append(f"## {title}\n\n| clause | keyword | statement | tests |\n|---|---|---|---|")
        parts.extend(_row(each) for each in table.statements if each.of == key)
        parts.append("")
    return "\n".join(parts)


def _row(statement: Statement) -> str:
    tests = "<br>".join(f"`{test}`" for test in statement.tests)
    return f"| {statement.clause} | {statement.level} | {statement.says} | {tests} |"


if __name__ == "__main__":
    PAGE.write_text(page(read_table()))
