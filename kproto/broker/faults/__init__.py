"""Injects faults: a test's control functions decide what the broker does with requests.

`controls` calls the control functions in order. `outcomes` defines the outcomes that control
functions may return. `named` has ready control functions, such as `Slow(200)`. `error_responses`
creates the error responses of `ErrorCode`.
"""

from .controls import Control, ControlFunction, ControlFunctions
from .named import CutFrame, ErrorCode, LoseResponses, SilentConnection, Slow, Throttled
from .outcomes import Close, Cut, Delay, Outcome, Refuse, Silence, Throttle

__all__ = [
    "Close",
    "Control",
    "ControlFunction",
    "ControlFunctions",
    "Cut",
    "CutFrame",
    "Delay",
    "ErrorCode",
    "LoseResponses",
    "Outcome",
    "Refuse",
    "Silence",
    "SilentConnection",
    "Slow",
    "Throttle",
    "Throttled",
]
