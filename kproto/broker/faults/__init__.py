"""Injects faults: a test's control functions decide what the broker does with requests.

`controls` calls the control functions in order. `outcomes` defines what they may return. `named`
has ready control functions, such as `Slow(200)`. `error_responses` creates error responses of any
API.
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
