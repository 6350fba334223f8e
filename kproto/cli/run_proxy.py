"""Runs the proxy that `kproto proxy` asks for, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..proxy import LineFilter, Proxy, ProxySettings, line_as_json, line_as_text
from ..proxy.lines import parse_apis
from ..study.conversations import Event
from ..study.recording import Recorder
from ..wire.errors import ConfigurationError
from .given_properties import properties_of

__all__ = ["filter_of", "run"]


def filter_of(options: argparse.Namespace) -> LineFilter:
    """What is shown, as the options say. Raises ConfigurationError."""
    return LineFilter(
        None if options.apis is None else parse_apis(options.apis),
        None if options.client_ids is None else tuple(options.client_ids),
    )


def run(options: argparse.Namespace) -> int:
    """Run the proxy until SIGINT or SIGTERM, or nobody reads what it prints; the exit code."""
    secured = properties_of(options).settings
    settings = ProxySettings(
        rewrite=options.rewrite,
        advertised_host=options.advertised_host,
        first_broker_port=options.first_broker_port,
        show_secrets=options.show_secrets,
        tls=secured.get("tls", False),
        sasl=secured.get("sasl"),
    )
    shown = filter_of(options)
    with _recorder(options.record, options.max_bytes) as recorder:
        asyncio.run(_serve(options, settings, shown, recorder))
    return 0


@contextlib.contextmanager
def _recorder(path: str | None, max_bytes: int) -> Iterator[Recorder | None]:
    if path is None:
        yield None
        return
    try:
        # Unbuffered: what was written stays when the process is killed.
        file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise ConfigurationError(f"cannot record to {path}: {error.strerror}") from None
    with file:
        yield Recorder(file, max_bytes)


async def _serve(
    options: argparse.Namespace,
    settings: ProxySettings,
    shown: LineFilter,
    recorder: Recorder | None,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)

    def put(line: str) -> None:
        try:
            print(line, flush=True)
        except BrokenPipeError:  # who read it has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            stop.set()

    def on_event(event: Event, connection: int) -> None:
        if not shown.takes(event):
            return
        if options.json:
            told = line_as_json(event, connection, show_secrets=settings.show_secrets)
            put(json.dumps(told))
        else:
            put(line_as_text(event, connection, show_secrets=settings.show_secrets))

    def on_notice(text: str, connection: int | None) -> None:
        if options.json:
            told: dict[str, Any] = {"notice": text}
            if connection is not None:
                told["connection"] = connection
            put(json.dumps(told))
        else:
            put(text if connection is None else f"#{connection}: {text}")

    proxy = Proxy(
        options.listen,
        options.target,
        settings,
        on_event=None if options.quiet else on_event,
        on_notice=on_notice,
        recorder=recorder,
    )
    async with proxy:
        on_notice(f"kproto proxy for {options.target} listens on {proxy.listens_at}", None)
        await stop.wait()
