"""Kills, stalls and stops members that process records with `run()`, and checks the result.

`python -m tools.handling` runs this check on an embedded broker; `tests/unit/handling` runs it with
fewer records.
"""
