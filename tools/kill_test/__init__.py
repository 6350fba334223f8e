"""Tests that acknowledged records are kept, once and in order, while leaders are killed.

    make kill-test     # 1,000,000 records, 50 kills; then 50 rounds of transactions
    .venv/bin/python -m tools.kill_test --records 20000 --kills 2 --seed 7
    .venv/bin/python -m tools.kill_test.exactly_once --rounds 6

`exactly_once` kills brokers, and the programs of `transform`, which produce in transactions.
`account` stores acknowledgements and the records that readers saw, `run` runs the test on a real
cluster, and `page` writes the result to docs/evidence/reliability.md.
"""

from .account import AcknowledgedOffsets, Sightings
from .run import Plan, Result, kill_test

__all__ = ["AcknowledgedOffsets", "Plan", "Result", "Sightings", "kill_test"]
