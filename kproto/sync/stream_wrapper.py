"""`StreamWrapper`: the polls of a consumer, whose records no interrupted call loses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ..client.consumer.record_stream import RecordStream
from .wrapper import Wrapper

__all__ = ["S", "StreamWrapper"]

S = TypeVar("S", bound="RecordStream[Any, Any, Any]")
T = TypeVar("T")
P = ParamSpec("P")


class StreamWrapper(Wrapper[S]):
    """Makes the calls of a consumer."""

    __slots__ = ()

    def _poll_call(
        self,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Polls; if the wait is interrupted, moves the positions back before returned records."""
        wrapped = self._wrapped
        undo = wrapped._return_in_flight
        result: T = self._binding.thread().call(function, *args, undo=undo, **kwargs)
        return result

    def _give_back(self, record: object) -> None:
        """Moves the position back before `record`, the last one that an iteration has taken.

        The caller has not received it, because its decoder was interrupted.
        """
        self._call_plain(self._wrapped._return_in_flight)

    def _is_renewable(self) -> bool:
        return self._object._loop is None  # it has not started
