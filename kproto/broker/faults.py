"""Faults by script: functions of a test that see each request before the broker does.

A control function gets the request and returns what shall happen to it: nothing special (None), a
response of its own, a delay, or the end of the connection. Plain decisions, apart from asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ..messages.base import Request, Response
from ..protocol.connection import ReceivedRequest
from ..wire.errors import ConfigurationError

__all__ = ["Close", "Control", "ControlFunction", "Controls", "Delay", "Outcome"]


class Delay(NamedTuple):
    """Wait for `ms` before the request goes on, to the next control and then to the broker.

    Later requests of the connection wait too.
    """

    ms: int


class Close(NamedTuple):
    """Close the connection without an answer; with `after_handling` the broker does its work."""

    after_handling: bool = False


Outcome: TypeAlias = Response | Delay | Close | None
"""What a control function decides; a response is sent in the version of its request."""

ControlFunction: TypeAlias = Callable[[ReceivedRequest], Outcome]


@dataclass(slots=True, eq=False)
class Control:
    """A control function at work; `times` is how often it may still decide, None for no end."""

    function: ControlFunction
    request: type[Request[Any]] | None
    times: int | None


class Controls:
    """The control functions of a broker, in the order in which they are asked."""

    def __init__(self) -> None:
        self._controls: list[Control] = []

    def add(
        self, function: ControlFunction, request: type[Request[Any]] | None, times: int | None
    ) -> Control:
        """Ask `function` about requests of that class, or all, until it has decided `times`."""
        if times is not None and times < 1:
            raise ConfigurationError(f"times is {times}; a control must decide at least once")
        control = Control(function, request, times)
        self._controls.append(control)
        return control

    def remove(self, control: Control) -> None:
        """Ask it no more; nothing happens when it is gone already."""
        if control in self._controls:
            self._controls.remove(control)

    def outcomes(self, request: ReceivedRequest) -> Iterator[Response | Delay | Close]:
        """What the controls decide about `request`, one after the other.

        The reader stops at the first that is no delay.
        """
        for control in tuple(self._controls):
            if control.request is not None and request.api_key != control.request.API_KEY:
                continue
            if control.times == 0 or control not in self._controls:
                continue  # it was taken away while a delay passed
            outcome = control.function(request)
            if outcome is None:
                continue
            if control.times is not None:
                control.times -= 1
                if control.times == 0:
                    self.remove(control)
            yield outcome
