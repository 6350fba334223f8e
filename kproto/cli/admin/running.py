"""Runs a verb of a command with a client."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from ...client import Client
from ..open_client import client_of

__all__ = ["VerbFunction", "run_verb"]

#: Runs a verb; returns the exit code.
VerbFunction: TypeAlias = Callable[[Client, argparse.Namespace], Awaitable[int]]


def run_verb(options: argparse.Namespace, verbs: Mapping[str, VerbFunction]) -> int:
    """Runs the function of `options.verb`; returns the exit code."""

    async def run() -> int:
        async with client_of(options) as client:
            return await verbs[options.verb](client, options)

    return asyncio.run(run())
