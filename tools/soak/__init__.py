"""Tests that a client's memory and open files stay flat while its brokers fail at random.

    make soak                              # 10 minutes
    .venv/bin/python -m tools.soak 60      # seconds

`run` runs clients on the embedded cluster under random faults, `samples` checks the measurements,
and `plot` draws them.
"""

from .run import Outcome, soak
from .samples import Sample, verdicts

__all__ = ["Outcome", "Sample", "soak", "verdicts"]
