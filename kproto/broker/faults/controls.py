"""Calls control functions: a test's functions that get each request before its handler does.

A control function returns None to handle the request normally, a response to send instead, or
another outcome of `outcomes`.
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

__all__ = ["Control", "ControlFunction", "ControlFunctions"]

logger = logging.getLogger("kproto.broker")


ControlFunction: TypeAlias = Callable[[ReceivedRequest], Outcome]


@dataclass(slots=True, eq=False)
class Control:
    """Holds a registered control function.

    `request` is the class of the requests for which `function` is called, None for all requests.
    `times` is the number of outcomes other than None that `function` may still return; None for no
    limit. `fault` is the last exception that `function` raised, or a ConfigurationError for an
    invalid return value; None if there was neither.
    """

    function: ControlFunction
    request: type[Request[Any]] | None
    times: int | None
    fault: Exception | None = None

    def decide(self, request: ReceivedRequest, topics: TopicLookup) -> Outcome:
        """Calls `function`; returns its outcome, or `Close()` if `function` fails.

        If the outcome is a `Refuse` of elements (topics, partitions, groups or resources), and the
        request contains no refused element, returns None.
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


class ControlFunctions:
    """Holds the control functions of a node, in the order in which they are called."""

    def __init__(self) -> None:
        self._controls: list[Control] = []

    def add(
        self, function: ControlFunction, request: type[Request[Any]] | None, times: int | None
    ) -> Control:
        """Registers the control function `function` for requests of class `request` (None: all).

        The function is removed after it has returned `times` outcomes other than None. If `times`
        is None, the attribute `times` of the function applies, such as `ErrorCode.times`. If the
        function has no such attribute, or if the attribute is None, the function is never removed.
        Raises ConfigurationError for invalid arguments.
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
        self.add_shared(control)
        return control

    def add_shared(self, control: Control) -> None:
        """Registers a control that other nodes have, too.

        `control.times` limits the total number of outcomes on all nodes that have the control.
        """
        self._controls.append(control)

    def remove(self, control: Control) -> None:
        """Removes a control; does nothing if it is removed already."""
        if control in self._controls:
            self._controls.remove(control)

    def outcomes(
        self, request: ReceivedRequest, topics: TopicLookup = NO_TOPICS
    ) -> Iterator[Decided]:
        """Calls the control functions in order, and yields each outcome that is not None.

        The caller stops the iteration at a final outcome, so that later functions are not called.
        Yields `Close()` for a function that fails.
        """
        for control in tuple(self._controls):
            if control.request is not None and request.api_key != control.request.API_KEY:
                continue
            if control.times == 0 or control not in self._controls:
                continue  # removed, or decided often enough, while the caller waited for a delay
            outcome = control.decide(request, topics)
            if outcome is None:
                continue
            if control.times is not None:
                control.times -= 1
                if control.times == 0:
                    self.remove(control)
            yield outcome
