"""Which tests `make test` leaves to `make exhaustive`, and that to `make thorough`; who runs what.

Nothing is left out by that: `make test-all` runs all three.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tools.kafka import VERSIONS

__all__ = [
    "EXHAUSTIVE",
    "THOROUGH",
    "ByServers",
    "below",
    "broker_files_without_group",
    "claim",
    "group_of",
    "longest_first",
    "mark_exhaustive",
    "rest_slow",
    "seeds",
    "shuffle",
]

EXHAUSTIVE = "exhaustive"
"""Marks what walks everything there is, or does again on other servers what one has shown."""

TOGETHER = (
    ("tests/kafka/test_cluster_fixture.py", "clusters"),
    ("tests/kafka/test_kills.py", "clusters"),
    ("tests/kafka/test_moving_leaders.py", "clusters"),
    ("tests/kafka/test_requests_of_many_brokers.py", "clusters"),
    ("tests/kafka/test_secured_cluster.py", "clusters"),
    ("tests/interop/test_cluster_like_kafka.py", "clusters"),
    ("tests/kafka/", "brokers"),
    ("tests/spark/", "spark"),
    ("tests/interop/test_events.py", "brokers"),
    ("tests/interop/test_like_kafka.py", "brokers"),
    ("tests/interop/test_offsets_like_kafka.py", "brokers"),
    ("tests/unit/test_readme.py", "brokers"),
    ("tests/reference/", "reference"),
    ("tests/unit/codegen/releases/", "reference"),
)
"""Tests that share servers, by their path: those of one name run in one process of a run.

The first row that fits counts. Those of clusters share none, but two clusters at once are too much
for a small machine. Those of Spark share a broker with the others, but take as long as all of them.
"""

THOROUGH = "thorough"
"""Marks what does at length what an exhaustive test shows. It is exhaustive, too."""

LONGEST = ("spark", "brokers", "clusters", "reference")
"""Groups that take minutes, the longest first: begun last, one would keep a worker by itself."""

SHARED_BROKERS = frozenset({"kafka_brokers", "secured"})
"""Fixtures that start a broker once in a process."""


def mark_exhaustive(items: Iterable[pytest.Item]) -> None:
    """Leave what is thorough, and other releases of Kafka than the newest, to those runs."""
    for item in items:
        if item.get_closest_marker(THOROUGH):
            item.add_marker(EXHAUSTIVE)
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_servers = item.get_closest_marker("kafka") or item.get_closest_marker("reference")
        if on_servers and any(value in VERSIONS[1:] for value in parameters):
            item.add_marker(EXHAUSTIVE)


def group_of(test: str) -> str:
    """Return what must stay in one process with a test: its servers' name, else its file."""
    path = test.partition("::")[0]
    return next((group for prefix, group in TOGETHER if path.startswith(prefix)), path)


def below(items: Iterable[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Returns the tests below a folder; compares text, as twenty thousand paths take long."""
    start = f"{folder}{os.sep}"
    return [item for item in items if str(item.path).startswith(start)]


def seeds(few: int, more: int, most: int) -> list[Any]:
    """Seeds up to `most` as parameters; exhaustive from `few` on, thorough from `more` on."""

    def marks_of(seed: int) -> tuple[pytest.MarkDecorator, ...]:
        if seed < few:
            return ()
        return (pytest.mark.exhaustive if seed < more else pytest.mark.thorough,)

    return [pytest.param(seed, marks=marks_of(seed)) for seed in range(most)]


def rest_slow(values: Iterable[Any], few: int, everyday: int | None = None) -> list[Any]:
    """Returns parameters: `make quick` takes the first `few`, `make test` the first `everyday`.

    Without `everyday` it takes all; else the rest is exhaustive.
    """

    def marks_of(at: int) -> list[pytest.MarkDecorator]:
        slow = [] if at < few else [pytest.mark.slow]
        return slow if everyday is None or at < everyday else [*slow, pytest.mark.exhaustive]

    return [pytest.param(value, marks=marks_of(at)) for at, value in enumerate(values)]


def longest_first(items: list[pytest.Item]) -> None:
    """Put the groups that take longest in front; all else stays in its order."""
    places = {group: place for place, group in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(group_of(item.nodeid), len(LONGEST)))


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffles the groups, the files of each group and the tests of each file.

    Servers and modules are still set up once: a group stays in one process, the tests of a file
    stay together, and pytest keeps tests together that share a parameter of a fixture.
    """

    @cache
    def place(name: str) -> float:
        return random.Random(f"{seed} {name}").random()

    def places(item: pytest.Item) -> tuple[float, float, float]:
        file = item.nodeid.partition("::")[0]
        return place(group_of(item.nodeid)), place(f"file {file}"), place(item.nodeid)

    items.sort(key=places)


def broker_files_without_group(items: Iterable[pytest.Item]) -> list[str]:
    """Returns the files whose tests share a broker and that have no row in `TOGETHER`.

    Such a file shares its broker with whatever other tests run on the same worker.
    """
    alone = {
        item.nodeid.partition("::")[0]
        for item in items
        if SHARED_BROKERS.intersection(getattr(item, "fixturenames", ()))
    }
    return sorted(file for file in alone if group_of(file) == file)


class ByServers(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives each worker whole groups, in the order in which they were collected.

    `--dist loadgroup` would do, if pytest-xdist could still rename a test: pytest 9.2 has made the
    names of tests its own, and then every mark of a group is ignored without a word.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def claim(folder: Path, group: str, worker: str) -> None:
    """Note in a folder that all workers share who runs a group; fail if another does already.

    Raises:
        AssertionError: Two processes run tests of one group, and start its servers twice.
    """
    note = folder / f"group-{group.replace('/', '-')}"
    try:
        with note.open("x") as file:
            file.write(worker)
    except FileExistsError:
        first = note.read_text()
        assert first == worker, f"group {group} runs in {first} and in {worker}"
