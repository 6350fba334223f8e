"""Which tests stay in one process of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.selection import TOGETHER, claim, group_of

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


def test_a_group_that_runs_in_two_processes_is_told(tmp_path: Path) -> None:
    claim(tmp_path, "brokers", "gw0")
    claim(tmp_path, "reference", "gw1")
    claim(tmp_path, "brokers", "gw0")
    with pytest.raises(AssertionError, match=r"brokers.*gw0.*gw1"):
        claim(tmp_path, "brokers", "gw1")
