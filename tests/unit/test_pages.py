"""Tests that the programs on the listed pages run as printed, and that tests on the pages pass.

These programs need only kproto.
"""

from __future__ import annotations

import pytest

from tests.support.pages import blocks, page_text, run_program

PAGES = (
    "docs/how-to/admin.md",
    "docs/how-to/broker.md",
    "docs/explanation/client.md",
    "docs/how-to/cloudevents-sdks.md",
    "docs/how-to/old-brokers.md",
    "docs/how-to/explorer.md",
    "docs/explanation/groups.md",
    "docs/how-to/handling.md",
    "docs/how-to/decode.md",
    "docs/how-to/messages.md",
    "docs/how-to/observability.md",
    "docs/how-to/proxy.md",
    "docs/how-to/records.md",
    "docs/how-to/broker-acls.md",
    "docs/how-to/secured-broker.md",
    "docs/how-to/serializers.md",
    "docs/how-to/study.md",
    "docs/how-to/testing.md",
    "docs/how-to/transactions.md",
)
PROGRAMS = [(page, program) for page in PAGES for program in blocks(page_text(page), "python")]


@pytest.mark.parametrize(("page", "program"), PROGRAMS, ids=[page for page, _ in PROGRAMS])
def test_a_program_runs(page: str, program: str) -> None:
    defined = run_program(program, page)
    for name in [name for name in defined if name.startswith("test_")]:
        defined[name]()


def test_each_page_has_programs() -> None:
    assert {page for page, _ in PROGRAMS} == set(PAGES)
