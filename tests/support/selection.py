"""Divides the tests between `make test`, `make exhaustive` and `make thorough`, and workers.

`make test-all` runs all three, so no test is omitted.
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
"""Marks tests of every case, and tests that repeat an everyday test on other servers."""

TOGETHER = (
    ("tests/kafka/test_cluster_fixture.py", "clusters"),
    ("tests/kafka/test_kills.py", "clusters"),
    ("tests/kafka/test_moving_leaders.py", "clusters"),
    ("tests/kafka/test_requests_of_many_brokers.py", "clusters"),
    ("tests/kafka/test_secured_cluster.py", "clusters"),
    ("tests/interop/test_cluster_like_kafka.py", "clusters"),
    ("tests/kafka/", "brokers"),
    ("tests/spark/test_cluster.py", "spark programs"),
    ("tests/spark/test_demo.py", "spark programs"),
    ("tests/spark/test_ends.py", "spark programs"),
    ("tests/spark/test_job_command.py", "spark programs"),
    ("tests/spark/test_killed_streams.py", "spark programs"),
    ("tests/spark/test_same_streams.py", "spark programs"),
    ("tests/spark/test_secrets.py", "spark programs"),
    ("tests/spark/", "spark"),
    ("tests/interop/test_events.py", "brokers"),
    ("tests/interop/test_like_kafka.py", "brokers"),
    ("tests/interop/test_offsets_like_kafka.py", "brokers"),
    ("tests/unit/test_readme.py", "brokers"),
    ("tests/reference/", "reference"),
    ("tests/unit/codegen/releases/", "reference"),
)
"""Groups of tests that share servers, by path: the tests of a group run in the same process.

The first matching row applies. Tests of clusters share no servers, but a small machine cannot run
two clusters at once. Tests of Spark share a broker with other tests, but are two separate groups,
because they take as long as all the others together: tests in the session of the process, and
tests that start programs with a Spark of their own.
"""

THOROUGH = "thorough"
"""Marks long versions of exhaustive tests. Such a test is exhaustive too."""

LONGEST = ("spark", "brokers", "spark programs", "clusters", "reference")
"""Groups that take minutes, longest first: a group that starts last would keep one worker busy."""

SHARED_BROKERS = frozenset({"kafka_brokers", "secured"})
"""Fixtures that start a broker once in a process."""


def mark_exhaustive(items: Iterable[pytest.Item]) -> None:
    """Marks tests on older Kafka releases as exhaustive, and on clusters of them as thorough."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_servers = item.get_closest_marker("kafka") or item.get_closest_marker("reference")
        if on_servers and any(value in VERSIONS[1:] for value in parameters):
            item.add_marker(THOROUGH if group_of(item.nodeid) == "clusters" else EXHAUSTIVE)
        if item.get_closest_marker(THOROUGH):
            item.add_marker(EXHAUSTIVE)


def group_of(test: str) -> str:
    """Returns the name of the servers that a test shares, or else its file."""
    path = test.partition("::")[0]
    return next((group for prefix, group in TOGETHER if path.startswith(prefix)), path)


def below(items: Iterable[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Returns the tests below a folder; compares text, because 20,000 Path objects are slow."""
    start = f"{folder}{os.sep}"
    return [item for item in items if str(item.path).startswith(start)]


def seeds(few: int, more: int, most: int) -> list[Any]:
    """Returns seeds up to `most` as parameters: from `few` on exhaustive, from `more` thorough."""

    def marks_of(seed: int) -> tuple[pytest.MarkDecorator, ...]:
        if seed < few:
            return ()
        return (pytest.mark.exhaustive if seed < more else pytest.mark.thorough,)

    return [pytest.param(seed, marks=marks_of(seed)) for seed in range(most)]


def rest_slow(values: Iterable[Any], few: int, everyday: int | None = None) -> list[Any]:
    """Returns parameters: `make quick` runs the first `few`, `make test` the first `everyday`.

    The others are exhaustive. Without `everyday`, `make test` runs all.
    """

    def marks_of(at: int) -> list[pytest.MarkDecorator]:
        slow = [] if at < few else [pytest.mark.slow]
        return slow if everyday is None or at < everyday else [*slow, pytest.mark.exhaustive]

    return [pytest.param(value, marks=marks_of(at)) for at, value in enumerate(values)]


def longest_first(items: list[pytest.Item]) -> None:
    """Moves the longest groups to the front; other tests keep their order."""
    sort_key = {group: rank for rank, group in enumerate(LONGEST)}
    items.sort(key=lambda item: sort_key.get(group_of(item.nodeid), len(LONGEST)))


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffles the groups, the files of each group and the tests of each file.

    Servers and modules are still set up once: a group stays in one process, the tests of a file
    stay together, and pytest keeps tests together that share a parameter of a fixture.
    """

    @cache
    def rank(name: str) -> float:
        return random.Random(f"{seed} {name}").random()

    def sort_key(item: pytest.Item) -> tuple[float, float, float]:
        file = item.nodeid.partition("::")[0]
        return rank(group_of(item.nodeid)), rank(f"file {file}"), rank(item.nodeid)

    items.sort(key=sort_key)


def broker_files_without_group(items: Iterable[pytest.Item]) -> list[str]:
    """Returns the files whose tests share a broker and that have no row in `TOGETHER`.

    Such a file shares its broker with arbitrary tests that run on the same worker.
    """
    alone = {
        item.nodeid.partition("::")[0]
        for item in items
        if SHARED_BROKERS.intersection(getattr(item, "fixturenames", ()))
    }
    return sorted(file for file in alone if group_of(file) == file)


class ByServers(LoadScopeScheduling):  # type: ignore[misc]  # the base class has no types
    """Gives each worker whole groups, in the order in which they were collected.

    `--dist loadgroup` does not work: pytest 9.2 does not let pytest-xdist rename tests, so every
    group mark is ignored silently.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def claim(folder: Path, group: str, worker: str) -> None:
    """Records in a folder of all workers which worker runs a group.

    Raises:
        AssertionError: Two processes run tests of one group, and start its servers twice.
    """
    file_of_group = folder / f"group-{group.replace('/', '-')}"
    try:
        with file_of_group.open("x") as file:
            file.write(worker)
    except FileExistsError:
        first = file_of_group.read_text()
        assert first == worker, f"group {group} runs in {first} and in {worker}"
