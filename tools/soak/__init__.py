"""Tests that a client's memory and files stay flat over time, under any faults of its brokers.

    make soak                              # 10 minutes
    .venv/bin/python -m tools.soak 60      # seconds

`run` lets clients work on the embedded cluster under random faults, `samples` judges the
measurements, `plot` draws them.
"""

from .run import Outcome, soak
from .samples import Sample, verdicts

__all__ = ["Outcome", "Sample", "soak", "verdicts"]
