"""Does a client stay small over time, whatever happens to its brokers?

    make soak                              # 10 minutes
    .venv/bin/python -m tools.soak 60      # seconds

`run` lets clients work on the embedded cluster under random faults, `samples` says what was
measured and whether it stayed flat, `plot` draws it.
"""

from .run import Outcome, soak
from .samples import Sample, verdicts

__all__ = ["Outcome", "Sample", "soak", "verdicts"]
