"""Reads the records of a member of any kind of group until the member must stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

__all__ = ["records_until"]

T = TypeVar("T")


async def records_until(records: AsyncIterator[T], stop: asyncio.Event) -> AsyncGenerator[T]:
    """Yields the items of `records`, until `stop` is set; a record that arrives then stays."""
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stopping.done():
            coming = asyncio.ensure_future(anext(records))
            await asyncio.wait([coming, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                break
            yield coming.result()
    finally:
        stopping.cancel()
