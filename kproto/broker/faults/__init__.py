"""Faults by script and by name: what shall happen to requests, decided before the broker sees them.

`controls` asks the functions of a test, in order; `outcomes` are what they may return; `named` are
ready ones, such as `Slow(200)`; `refusing` makes the answer that says an error, for any API.
"""

from .controls import Control, ControlFunction, Controls
from .named import CutFrame, ErrorCode, LoseAnswer, SilentConnection, Slow, Throttled
from .outcomes import Close, Cut, Delay, Outcome, Refuse, Silence, Throttle

__all__ = [
    "Close",
    "Control",
    "ControlFunction",
    "Controls",
    "Cut",
    "CutFrame",
    "Delay",
    "ErrorCode",
    "LoseAnswer",
    "Outcome",
    "Refuse",
    "Silence",
    "SilentConnection",
    "Slow",
    "Throttle",
    "Throttled",
]
