"""Which tests `make test` leaves to `make exhaustive`, and which worker of a run gets what.

Nothing is left out by that: `make test-all` runs both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.kafka import VERSIONS

__all__ = ["EXHAUSTIVE", "keep_together", "mark_older_releases"]

EXHAUSTIVE = "exhaustive"
"""Marks what walks everything there is, or does again on other servers what one has shown."""

#: Markers of tests that share servers, which are started once a worker: one worker runs them all.
TOGETHER = (("spark", "brokers"), ("kafka", "brokers"), ("reference", "reference"))


def mark_older_releases(items: Iterable[pytest.Item]) -> None:
    """Leave tests on other releases of Kafka than the newest to the exhaustive run."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_servers = item.get_closest_marker("kafka") or item.get_closest_marker("reference")
        if on_servers and any(value in VERSIONS[1:] for value in parameters):
            item.add_marker(EXHAUSTIVE)


def keep_together(items: Iterable[pytest.Item], root: Path) -> None:
    """Name the group of each test: that of its servers, else its file, whose fixtures it shares."""
    for item in items:
        mine = {mark.name for mark in item.iter_markers()}
        shared = [group for marker, group in TOGETHER if marker in mine]
        group = shared[0] if shared else item.path.relative_to(root).as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
