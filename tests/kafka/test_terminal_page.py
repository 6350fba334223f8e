"""Tests the sessions of docs/how-to/terminal.md on real brokers, which have no other topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.terminal_sessions import differences
from tools.kafka import VERSIONS, KafkaNode

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.mark.parametrize("release", VERSIONS)
def test_sessions_print_what_stands_in_the_page(release: str, tmp_path: Path) -> None:
    try:
        node = KafkaNode(release)
        node.start()
    except CANNOT_START as error:
        not_available(f"Kafka {release}", error)
    try:
        assert differences("docs/how-to/terminal.md", node.bootstrap, tmp_path) == []
    finally:
        node.close()
