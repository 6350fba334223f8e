"""Runs a verb of a command with a client."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from ...client import Client
from ...client.admin import AdminError
from ...wire.errors import KprotoError
from ..open_client import client_of
from ..terminal_words import terminal_text

__all__ = ["PartialResults", "VerbFunction", "run_verb"]

K = TypeVar("K")
V = TypeVar("V")

#: Runs a verb; returns the exit code.
VerbFunction: TypeAlias = Callable[[Client, argparse.Namespace], Awaitable[int]]


def run_verb(options: argparse.Namespace, verbs: Mapping[str, VerbFunction]) -> int:
    """Runs the function of `options.verb`; returns the exit code."""

    async def run() -> int:
        async with client_of(options) as client:
            return await verbs[options.verb](client, options)

    return asyncio.run(run())


class PartialResults:
    """Collects the errors of calls with several parts, so that a verb first prints what it found.

    Call `raise_error` after the output.
    """

    def __init__(self) -> None:
        self.errors: list[KprotoError] = []

    async def of(self, call: Awaitable[Mapping[K, V]]) -> Mapping[K, V]:
        """Returns the results of a call; keeps the AdminError of its failed parts.

        Raises as `raise_error` if all parts have failed.
        """
        found = await self.each_of(call)
        if not found:
            self.raise_error()
        return found

    async def each_of(self, call: Awaitable[Mapping[K, V]]) -> Mapping[K, V]:
        """Returns the results of one of several calls, also if all of its parts have failed."""
        try:
            return await call
        except AdminError as error:
            self.errors.append(error)
            return error.results

    def raise_error(self) -> None:
        """Raises the last error, if there is one; prints the errors before it."""
        if self.errors:
            for error in self.errors[:-1]:
                print(f"kproto: error: {terminal_text(error)}", file=sys.stderr)
            raise self.errors[-1]
