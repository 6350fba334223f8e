"""Helps tests of `Client.admin`: names of parts, names of errors, waits for metadata."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest

from kproto.client.admin import AdminError
from kproto.wire.errors import BrokerResponseError

__all__ = ["error_names", "eventually", "new_name"]

_PATIENCE_S = 30.0


def new_name(what: str) -> str:
    """Returns a name, for example of a topic, that no other test uses."""
    return f"admin-{what}-{uuid.uuid4().hex[:12]}"


def error_names(error: AdminError) -> dict[object, str]:
    """Returns Kafka's name of the error of each failed part, or the name of its class."""
    return {
        part: each.name if isinstance(each, BrokerResponseError) else type(each).__name__
        for part, each in error.errors.items()
    }


async def eventually(check: Callable[[], Awaitable[None]]) -> None:
    """Repeats `check` until the brokers have the metadata of a change."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                return await check()
            except (AssertionError, KeyError, AdminError, pytest.fail.Exception):
                await asyncio.sleep(0.02)
