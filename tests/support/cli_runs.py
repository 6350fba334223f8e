"""Runs commands of `kproto` on an embedded broker, in the process of the test."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from kproto.cli import main
from kproto.client import Client, NewTopic

__all__ = ["Finished", "Run", "new_topic", "runner"]


class Finished(NamedTuple):
    """The result of a command: exit code, standard output as bytes, lines of standard error."""

    code: int
    out: bytes
    err: list[str]

    def lines(self) -> list[str]:
        """Returns the lines of standard output."""
        return self.out.decode().splitlines()


class Run(Protocol):
    """Runs a command; `stdin` is the content of a file for `--file`."""

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Finished: ...


def new_topic(bootstrap: str, prefix: str) -> str:
    """Creates a topic with three partitions, whose name begins with `prefix`; returns the name."""
    name = f"{prefix}-{uuid.uuid4().hex}"

    async def create() -> None:
        async with Client(bootstrap) as client:
            await client.create_topics(NewTopic(name, 3, 1))

    asyncio.run(create())
    return name


def runner(
    bootstrap: str, capsys: pytest.CaptureFixture[bytes], folder: Path
) -> Callable[..., Finished]:
    """Returns the function that runs a command with `--bootstrap`."""

    def run(*arguments: str, stdin: bytes | None = None) -> Finished:
        words = [*arguments, "--bootstrap", bootstrap]
        if stdin is not None:
            file = folder / "input"
            file.write_bytes(stdin)
            words += ["--file", str(file)]
        code = main(words)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err.decode().splitlines())

    return run
