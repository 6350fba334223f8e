"""Tests that acknowledged records survive, once and in order, while leaders are killed.

    make kill-test                                   # 1,000,000 records, 20 kills
    .venv/bin/python -m tools.kill_test --records 20000 --kills 2 --seed 7

`account` counts what was acknowledged and what readers saw, `run` does it on a real cluster,
`page` writes the verdict into docs/evidence/reliability.md.
"""

from .account import Account, Sightings
from .run import Plan, Result, kill_test

__all__ = ["Account", "Plan", "Result", "Sightings", "kill_test"]
