"""Divides the tests between `make test`, `make exhaustive`, `make thorough`, and between workers.

`make test-all` runs all three, so no test is omitted.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping
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
    "named_rows",
    "rest_slow",
    "seeds",
    "shuffle",
]

EXHAUSTIVE = "exhaustive"
"""Marks tests of every case, and tests that repeat an everyday test on other servers."""

TOGETHER = (
    ("tests/kafka/test_admin_placement.py", "clusters"),
    ("tests/kafka/test_admin_voters.py", "clusters"),
    ("tests/kafka/test_cluster_fixture.py", "clusters"),
    ("tests/kafka/test_kills.py", "clusters"),
    ("tests/kafka/test_moving_leaders.py", "clusters"),
    ("tests/kafka/test_requests_of_many_brokers.py", "clusters"),
    ("tests/kafka/test_secured_cluster.py", "clusters"),
    ("tests/kafka/test_share_coordinators.py", "clusters"),
    ("tests/kafka/test_share_leaders.py", "clusters"),
    ("tests/kafka/test_share_storms.py", "clusters"),
    ("tests/interop/test_admin_like_kafka.py", "clusters"),
    ("tests/interop/test_cluster_like_kafka.py", "clusters"),
    ("tests/kafka/test_admin_on_old_brokers.py", "old brokers"),
    ("tests/kafka/test_real_old_brokers.py", "old brokers"),
    ("tests/spark/test_old_brokers.py", "old brokers"),
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
    ("tests/unit/codegen/", "definitions"),
    ("tests/unit/schema/", "definitions"),
)
"""Groups of tests that share servers, by path: the tests of a group run in the same process.

The first matching row applies. Tests of clusters share no servers, but a small machine cannot run
two clusters at once. Tests of Spark share a broker with other tests, but are separate groups,
because they take as long as all other tests together: the group "spark" uses the Spark session of
the process, and the group "spark programs" starts programs that have a Spark of their own. Tests of
the definitions share what `committed_release` has read.
"""

THOROUGH = "thorough"
"""Marks long versions of exhaustive tests. Such a test is exhaustive too."""

LONGEST = ("spark", "brokers", "spark programs", "old brokers", "clusters", "reference")
"""Groups that take minutes, longest first: a group that starts last would keep one worker busy."""

SHARED_BROKERS = frozenset({"kafka_brokers", "secured"})
"""Fixtures that start a broker once in a process."""


def mark_exhaustive(items: Iterable[pytest.Item]) -> None:
    """Marks tests on older Kafka releases as exhaustive.

    If such a test is in group "clusters", marks the test as thorough. Every thorough test is also
    marked as exhaustive.
    """
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_servers = item.get_closest_marker("kafka") or item.get_closest_marker("reference")
        if on_servers and any(value in VERSIONS[1:] for value in parameters):
            item.add_marker(THOROUGH if group_of(item.nodeid) == "clusters" else EXHAUSTIVE)
        if item.get_closest_marker(THOROUGH):
            item.add_marker(EXHAUSTIVE)


def group_of(test: str) -> str:
    """Returns the group of a test: the group of its file in `TOGETHER`, or else the file itself."""
    path = test.partition("::")[0]
    return next((group for prefix, group in TOGETHER if path.startswith(prefix)), path)


def below(items: Iterable[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Returns the tests below a folder; compares paths as text, because Path objects are slow."""
    start = f"{folder}{os.sep}"
    return [item for item in items if str(item.path).startswith(start)]


def seeds(few: int, more: int, most: int, *, quick: int | None = None) -> list[Any]:
    """Returns the seeds 0 to `most` - 1 as parameters.

    Seeds from `few` on are exhaustive, and seeds from `more` on are thorough. `make quick` runs
    only the first `quick` seeds, by default the first `few`.
    """

    def marks_of(seed: int) -> tuple[pytest.MarkDecorator, ...]:
        if seed < few:
            return () if quick is None or seed < quick else (pytest.mark.slow,)
        return (pytest.mark.exhaustive if seed < more else pytest.mark.thorough,)

    return [pytest.param(seed, marks=marks_of(seed)) for seed in range(most)]


def rest_slow(values: Iterable[Any], few: int, everyday: int | None = None) -> list[Any]:
    """Returns a pytest parameter for each value, marked by its position in `values`.

    `make quick` runs only the first `few` values, and `make test` only the first `everyday`; the
    later values are exhaustive. If `everyday` is None, `make test` runs all values.
    """

    def marks_of(at: int) -> list[pytest.MarkDecorator]:
        slow = [] if at < few else [pytest.mark.slow]
        return slow if everyday is None or at < everyday else [*slow, pytest.mark.exhaustive]

    return [pytest.param(value, marks=marks_of(at)) for at, value in enumerate(values)]


def named_rows(
    rows: Mapping[str, Iterable[Callable[..., object]]], nth: int, mark: pytest.MarkDecorator
) -> list[Any]:
    """Returns a pytest parameter for each function, with the id `KEY-FUNCTION`.

    KEY is the key of the function in `rows`. All parameters have `mark`, except the first and every
    `nth` one after it.
    """
    named = [(name, function) for name, functions in rows.items() for function in functions]
    return [
        pytest.param(function, id=f"{name}-{function.__name__}", marks=mark if at % nth else ())
        for at, (name, function) in enumerate(named)
    ]


def longest_first(items: list[pytest.Item]) -> None:
    """Moves the tests of the groups in `LONGEST` to the front; other tests keep their order."""
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
    """Gives each worker whole groups of tests, in the order in which pytest collected the tests.

    `--dist loadgroup` does not work: pytest 9.2 does not let pytest-xdist rename tests, so every
    group mark is ignored silently.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def claim(folder: Path, group: str, worker: str) -> None:
    """Writes to `folder`, which all workers share, that `worker` runs the group `group`.

    Raises:
        AssertionError: another worker runs the group, too; both start the group's servers.
    """
    file_of_group = folder / f"group-{group.replace('/', '-')}"
    try:
        with file_of_group.open("x") as file:
            file.write(worker)
    except FileExistsError:
        first = file_of_group.read_text()
        assert first == worker, f"group {group} runs in {first} and in {worker}"
