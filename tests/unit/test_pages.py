"""The programs of the pages that need nothing but kproto run as printed, and so do their tests."""

from __future__ import annotations

import pytest

from tests.support.pages import blocks, page_text, run_program

PAGES = (
    "docs/broker.md",
    "docs/client.md",
    "docs/explorer.md",
    "docs/groups.md",
    "docs/handling.md",
    "docs/decode.md",
    "docs/messages.md",
    "docs/observability.md",
    "docs/proxy.md",
    "docs/records.md",
    "docs/security-acls.md",
    "docs/security-broker.md",
    "docs/study.md",
    "docs/testing.md",
)
PROGRAMS = [(page, program) for page in PAGES for program in blocks(page_text(page), "python")]


@pytest.mark.parametrize(("page", "program"), PROGRAMS, ids=[page for page, _ in PROGRAMS])
def test_a_program_runs(page: str, program: str) -> None:
    defined = run_program(program, page)
    for name in [name for name in defined if name.startswith("test_")]:
        defined[name]()


def test_each_page_has_programs() -> None:
    assert {page for page, _ in PROGRAMS} == set(PAGES)
