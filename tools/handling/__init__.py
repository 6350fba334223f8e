"""Kills, stalls and stops members that handle records with `run()`, and judges the result.

`python -m tools.handling` runs it on an embedded broker; `tests/unit/handling` runs a small one.
"""
