"""Programs that handle records by `run()` are killed, stalled and stopped; what they did is judged.

`python -m tools.handling` runs it on an embedded broker; `tests/unit/handling` runs a small one.
"""
