"""Helps tests of `Client.admin`: names of parts and errors, waits for metadata, skips."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kproto
from kproto.client.admin import AdminError
from kproto.messages.base import Request
from kproto.wire.errors import BrokerResponseError

__all__ = ["error_names", "eventually", "new_name", "skip_unanswered"]

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


async def skip_unanswered(client: kproto.Client, *requests: type[Request[Any]]) -> None:
    """Skips the test if the broker, such as the embedded broker, lacks one of `requests`."""
    connection = await client.connection()
    missing = [each.__name__ for each in requests if each.API_KEY not in connection.ranges]
    if missing:
        pytest.skip(f"the broker does not answer {', '.join(missing)}")
