"""Tests which tests form a group that a parallel run keeps in one process."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.support.selection import (
    LONGEST,
    TOGETHER,
    broker_files_without_group,
    claim,
    group_of,
    longest_first,
    shuffle,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/kafka/test_client.py::test_a[4.4.0]", "brokers"),
        ("tests/spark/test_plan.py::test_b", "spark"),
        ("tests/reference/test_some.py::test_c", "reference"),
        ("tests/unit/wire/test_varints.py::test_d", "tests/unit/wire/test_varints.py"),
    ],
)
def test_tests_that_share_servers_have_one_group(test: str, group: str) -> None:
    assert group_of(test) == group


def test_every_row_is_an_existing_path() -> None:
    assert all((ROOT / prefix).exists() for prefix, _ in TOGETHER)


class Named:
    """A fake test item with the attributes that the selection reads."""

    def __init__(self, nodeid: str, *fixtures: str) -> None:
        self.nodeid = nodeid
        self.fixturenames = fixtures


def test_the_longest_groups_come_first_and_others_keep_their_order() -> None:
    ids = [
        "tests/kafka/test_client.py::test_a",
        "tests/unit/b.py::test_b",
        "tests/spark/test_plan.py::test_c",
        "tests/unit/a.py::test_d",
        "tests/spark/test_job.py::test_e",
    ]
    items: list[Any] = [Named(each) for each in ids]
    longest_first(items)
    assert [item.nodeid for item in items] == [ids[at] for at in (2, 4, 0, 1, 3)]


def shuffled(ids: list[str], seed: int) -> list[str]:
    items: list[Any] = [Named(each) for each in ids]
    shuffle(items, seed)
    return [item.nodeid for item in items]


def test_shuffling_keeps_files_and_groups_together() -> None:
    files = [f"tests/{kind}/test_{name}.py" for kind in ("kafka", "spark") for name in "ab"]
    files += [f"tests/unit/test_{name}.py" for name in "abcd"]
    ids = [f"{file}::test_{number}" for file in files for number in range(5)]
    orders = {tuple(shuffled(ids, seed)) for seed in range(5)}
    assert len(orders) == 5
    for order in orders:
        assert sorted(order) == sorted(ids)
        assert len(list(groupby(order, key=lambda it: it.partition("::")[0]))) == len(files)
        assert len(list(groupby(order, key=group_of))) == 6
        assert list(order) != sorted(order)


def test_the_order_of_a_seed_is_the_same_in_every_process() -> None:
    ids = [f"tests/unit/test_{name}.py::test_{number}" for name in "abc" for number in range(3)]
    assert shuffled(ids, 3) == shuffled(list(reversed(ids)), 3)


def test_files_that_share_a_broker_without_a_group_are_reported() -> None:
    items: list[Any] = [
        Named("tests/kafka/test_client.py::test_a", "kafka_brokers"),
        Named("tests/unit/wire/test_varints.py::test_b", "tmp_path"),
        Named("tests/unit/proxy/test_proxy.py::test_c", "tmp_path", "secured"),
        Named("tests/unit/proxy/test_proxy.py::test_d", "secured"),
    ]
    assert broker_files_without_group(items) == ["tests/unit/proxy/test_proxy.py"]


def test_the_longest_are_groups_of_tests_that_share_servers() -> None:
    assert set(LONGEST) <= {group for _, group in TOGETHER}


def test_a_group_in_two_processes_is_reported(tmp_path: Path) -> None:
    claim(tmp_path, "brokers", "gw0")
    claim(tmp_path, "reference", "gw1")
    claim(tmp_path, "brokers", "gw0")
    with pytest.raises(AssertionError, match=r"brokers.*gw0.*gw1"):
        claim(tmp_path, "brokers", "gw1")
