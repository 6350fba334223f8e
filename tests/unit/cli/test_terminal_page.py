"""Tests that the sessions of docs/how-to/terminal.md print what stands in the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.embedded import threaded_broker
from tests.support.terminal_sessions import commands_of, differences

PAGE = "docs/how-to/terminal.md"


@pytest.mark.slow
def test_sessions_print_what_stands_in_the_page(tmp_path: Path) -> None:
    assert len(commands_of(PAGE)) > 20
    with threaded_broker() as broker:
        assert differences(PAGE, broker.bootstrap, tmp_path) == []
