"""Fault injection: control functions of tests decide what happens to requests.

`controls` calls the control functions in order; `outcomes` are what they may return; `named` are
ready faults such as `Slow(200)`; `error_responses` makes error responses of any API.
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
