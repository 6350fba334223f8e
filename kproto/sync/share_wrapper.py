"""`ShareWrapper`: the polls of a share consumer, whose records no interrupted call loses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, Generic, ParamSpec, TypeVar

from ..client.consumer.share_consumer import AnyShareRecord, ShareConsumer
from ..client.fetch.share.acquisition import ShareRecord
from ..records.type_variables import K, U, V
from ..wire.errors import UndecodableRecordError
from .wrapper import Wrapper

__all__ = ["ShareWrapper"]

T = TypeVar("T")
P = ParamSpec("P")


class ShareWrapper(Wrapper[ShareConsumer[K, V, U]], Generic[K, V, U]):
    """Makes the calls of a share consumer."""

    __slots__ = ()

    def _poll_call(
        self,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Polls; if the wait is interrupted, releases records that the poll has returned.

        It also releases the undecodable record whose error the poll has raised.
        """
        wrapped = self._wrapped
        polled: list[T] = []
        errors: list[UndecodableRecordError] = []

        async def poll() -> T:
            try:
                result = await function(*args, **kwargs)
            except UndecodableRecordError as error:
                errors.append(error)
                raise
            polled.append(result)
            return result

        def undo() -> None:
            wrapped._release_unreceived(chain.from_iterable(map(_records_in, polled)))
            if errors:
                wrapped._release_undecodable()

        result: T = self._binding.thread().call(poll, undo=undo)
        return result

    def _give_back(self, record: ShareRecord[Any, Any]) -> None:
        """Releases `record`, which an iteration has taken: its decoder was interrupted.

        The caller has not received it, and the group delivers it again.
        """
        self._call_plain(self._wrapped._release_unreceived, [record])

    def _is_renewable(self) -> bool:
        return self._object._loop is None  # it has not started


def _records_in(polled: Any) -> Iterable[AnyShareRecord]:
    """Returns the records of the result of a poll: of a record, a list, or lists by partition."""
    if isinstance(polled, ShareRecord):
        return [polled]
    return chain.from_iterable(polled.values()) if isinstance(polled, dict) else polled
