"""Which tests stay in one process of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.selection import LONGEST, TOGETHER, claim, group_of, longest_first

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


def test_every_row_is_a_place_that_is_there() -> None:
    assert all((ROOT / prefix).exists() for prefix, _ in TOGETHER)


class Named:
    """Of an item, what is looked at."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def test_the_longest_groups_come_first_and_all_else_stays_in_order() -> None:
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


def test_the_longest_are_groups_of_tests_that_share_servers() -> None:
    assert set(LONGEST) <= {group for _, group in TOGETHER}


def test_a_group_that_runs_in_two_processes_is_told(tmp_path: Path) -> None:
    claim(tmp_path, "brokers", "gw0")
    claim(tmp_path, "reference", "gw1")
    claim(tmp_path, "brokers", "gw0")
    with pytest.raises(AssertionError, match=r"brokers.*gw0.*gw1"):
        claim(tmp_path, "brokers", "gw1")
