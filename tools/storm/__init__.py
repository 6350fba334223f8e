"""Runs a storm: members of a group join, leave, stall, are slow and are killed; checks the result.

    make storm                                        # 10 minutes; see docs/evidence/reliability.md
    .venv/bin/python -m tools.storm --minutes 1 --seed 7 --version 3.9.2 --assignor range
    make storm ARGS=share                             # a share group: see the package `share`

A producer writes records during the storm. `members` are the programs, `running` starts and ends
them, `sightings` checks their log lines, `run` chooses the actions, and `page` formats the result.
"""

from .run import Plan, Result, storm

__all__ = ["Plan", "Result", "storm"]
