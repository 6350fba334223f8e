"""Runs handlers that fail, stall and are killed, and judges the history that the handlers wrote."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tools.handling.proof import Plan, prove


def prove_it(plan: Plan, folder: Path) -> None:
    its = asyncio.run(prove(plan, folder))
    assert its.wrong == []
    assert its.records == plan.records
    assert its.dead_letters > 0
    assert its.commits >= plan.partitions


@pytest.mark.slow
def test_a_few_records_with_a_member_that_is_killed(tmp_path: Path) -> None:
    prove_it(Plan(3_000, 2, "key", harms=("kill",)), tmp_path)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "order",
    ["key", *(pytest.param(it, marks=pytest.mark.thorough) for it in ("partition", "none"))],
)
def test_every_record_is_handled_in_its_order_or_is_a_dead_letter(
    order: Any, tmp_path: Path
) -> None:
    prove_it(Plan(order=order), tmp_path)
