"""Faults by script: functions of a test that see each request before the broker does.

A control function gets the request and returns what shall happen to it: nothing special (None), a
response of its own, or another outcome. Plain decisions, apart from asyncio.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...messages.base import Request
from ...protocol.connection import ReceivedRequest
from ...wire.errors import ConfigurationError
from .error_responses import NO_TOPICS, TopicLookup, applies_to
from .outcomes import OUTCOMES, Close, Decided, Outcome, Refuse

__all__ = ["Control", "ControlFunction", "Controls"]

logger = logging.getLogger("kproto.broker")


ControlFunction: TypeAlias = Callable[[ReceivedRequest], Outcome]


@dataclass(slots=True, eq=False)
class Control:
    """A control function at work; `times` is how often it may still decide, None for no end.

    `fault` is what it raised last, or why what it returned is no outcome: None where all went well.
    """

    function: ControlFunction
    request: type[Request[Any]] | None
    times: int | None
    fault: Exception | None = None

    def decide(self, request: ReceivedRequest, topics: TopicLookup) -> Outcome:
        """What the function returns; where it fails, the connection is closed.

        None where it would refuse what the request is not about.
        """
        try:
            outcome: object = self.function(request)
            if isinstance(outcome, Refuse):
                return outcome if applies_to(request, outcome, topics) else None
            if outcome is None or isinstance(outcome, OUTCOMES):
                return outcome
            raise ConfigurationError(
                f"a control function returned {outcome!r:.80}; it may return None, a response, "
                "Delay(ms), Close() or another outcome of kproto.broker.faults"
            )
        except Exception as fault:
            self.fault = fault
            logger.exception(
                "the control function %s failed on %s v%d, whose connection is closed",
                getattr(self.function, "__qualname__", repr(self.function)),
                request.name,
                request.version,
            )
            return Close()


class Controls:
    """The control functions of a broker, in the order in which they are asked."""

    def __init__(self) -> None:
        self._controls: list[Control] = []

    def add(
        self, function: ControlFunction, request: type[Request[Any]] | None, times: int | None
    ) -> Control:
        """Ask `function` about requests of that class, or all, until it has decided `times`.

        A fault that says itself how often, as `ErrorCode` does, need not be told. Raises
        ConfigurationError for what is no function, no class of a request or no number of times.
        """
        if not callable(function):
            raise ConfigurationError(
                f"a control is {function!r:.80}; give a function of the request that returns what "
                "shall happen, or a fault by name, such as Slow(200)"
            )
        if request is not None and not (isinstance(request, type) and issubclass(request, Request)):
            raise ConfigurationError(
                f"request is {request!r:.80}; give a class of requests, such as FetchRequest"
            )
        times = getattr(function, "times", None) if times is None else times
        if times is not None and times < 1:
            raise ConfigurationError(f"times is {times}; a control must decide at least once")
        control = Control(function, request, times)
        self.take(control)
        return control

    def take(self, control: Control) -> None:
        """Ask a control that another node asks as well; `times` counts for both."""
        self._controls.append(control)

    def remove(self, control: Control) -> None:
        """Ask it no more; nothing happens when it is gone already."""
        if control in self._controls:
            self._controls.remove(control)

    def outcomes(
        self, request: ReceivedRequest, topics: TopicLookup = NO_TOPICS
    ) -> Iterator[Decided]:
        """What the controls decide about `request`, one after the other.

        The reader stops at the last word. A function that fails has decided, too.
        """
        for control in tuple(self._controls):
            if control.request is not None and request.api_key != control.request.API_KEY:
                continue
            if control.times == 0 or control not in self._controls:
                continue  # it was taken away while a delay passed
            outcome = control.decide(request, topics)
            if outcome is None:
                continue
            if control.times is not None:
                control.times -= 1
                if control.times == 0:
                    self.remove(control)
            yield outcome
