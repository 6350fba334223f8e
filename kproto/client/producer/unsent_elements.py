"""Keeps the elements of `send_many` and `send_events` that were read, for `EncodeError.unsent`.

A producer with codecs, and a call that sends events, converts each element to a record before it
appends the record. If an element cannot be sent, the program gets the elements as it has passed
them, not the records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ...wire.errors import EncodeError, KprotoError
from .acks import Acks

__all__ = ["converted", "keeping", "send_converted", "set_unsent"]


def keeping(values: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    """Yields the elements of `values`, and appends each to `kept`."""
    append = kept.append
    for each in values:
        append(each)
        yield each


def _keeping_last(values: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    """Yields the elements of `values`; `kept` has the last one, and none if `values` raises."""
    try:
        for each in values:
            kept[:] = (each,)
            yield each
    except Exception:
        kept.clear()
        raise


async def send_converted(
    values: Iterable[Any],
    convert: Callable[[Iterable[Any]], Iterator[Any]],
    send: Callable[[Iterable[Any]], Awaitable[Acks]],
) -> Acks:
    """Calls `send` with the records that `convert` makes of `values`; returns the acks.

    Converts all elements of a collection first, and those of an iterator while `send` reads them.
    An EncodeError that the call raises has the unsent elements of `values`.
    """
    if isinstance(values, Collection):
        elements = [*values]
        records = converted(elements, convert)
        try:
            return await send(records)
        except KprotoError as error:
            set_unsent(error, elements, len(elements))
            raise
    kept: list[Any] = []
    try:
        return await send(convert(_keeping_last(values, kept)))
    except KprotoError as error:
        set_unsent(error, kept)
        raise


def converted(elements: list[Any], convert: Callable[[Iterable[Any]], Iterable[Any]]) -> list[Any]:
    """Returns the records that `convert` makes of `elements`; an EncodeError has all of them."""
    try:
        return [*convert(elements)]
    except EncodeError as error:
        error.unsent = elements
        raise


def set_unsent(error: KprotoError, elements: Sequence[Any], count: int | None = None) -> None:
    """Replaces the unsent records of an EncodeError by the elements that they were made of.

    `error` is the EncodeError, or has it as its cause; other errors are not changed. `elements` end
    with the unsent elements; the first `count` of them were converted to records. If `count` is
    None, all of them are unsent.
    """
    found = error if isinstance(error, EncodeError) else error.__cause__
    if isinstance(found, EncodeError):
        begin = 0 if count is None else count - len(found.unsent)
        found.unsent = [*elements[begin:]]
