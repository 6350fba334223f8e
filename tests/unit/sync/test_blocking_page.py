"""Tests that the programs of docs/how-to/blocking.md run; only the broker's address is replaced."""

from __future__ import annotations

from typing import Any

import kproto.sync
from tests.support.embedded import threaded_broker
from tests.support.pages import blocks, page_text

PAGE = "docs/how-to/blocking.md"


def test_programs_of_the_page_run_one_after_the_other() -> None:
    scope: dict[str, Any] = {}
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("orders"))
        broker.call(lambda it: it.create_topic("bills"))
        for program in blocks(page_text(PAGE), "python"):
            text = program.replace("localhost:9092", broker.bootstrap)
            exec(compile(text, PAGE, "exec"), scope)
        values = [each.value for each in broker.call(lambda it: it.records("orders"))]
    assert values == [b"one", b"two", b"three", b"four", b"five", b"from a cell"]


def test_page_names_every_class() -> None:
    text = page_text("docs/reference/api/sync.md")
    for name in kproto.sync.__all__:
        assert f"{getattr(kproto.sync, name).__module__}.{name}\n" in text
