"""Runs the proxy of `kproto proxy` until SIGINT, SIGTERM or a closed output."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ..protocol.message_classes import MessageClasses
from ..proxy import EventFilter, Proxy, ProxySettings, event_as_json, event_as_text
from ..proxy.event_log import parse_apis
from ..study.conversations import TrafficEvent
from ..study.recording import Recorder
from ..wire.counted import counted, were
from .command_error import CommandError
from .read_properties import properties_from_options
from .selection import message_classes_from_options

__all__ = ["LineWriter", "event_filter", "run"]

#: Maximum number of lines that wait to be printed: some seconds of a busy cluster, a few megabytes.
_MAX_WAITING_LINES: Final = 20_000

#: For how many seconds each step of `LineWriter.close` waits for the remaining lines to be printed.
_LOG_CLOSE_TIMEOUT_S: Final = 2.0


def event_filter(options: argparse.Namespace, classes: MessageClasses) -> EventFilter:
    """Returns the filter for `--api` and `--client-id`; `classes` has the APIs.

    Raises ConfigurationError if `--api` names an unknown API.
    """
    return EventFilter(
        None if options.apis is None else parse_apis(options.apis, classes),
        None if options.client_ids is None else tuple(options.client_ids),
    )


def run(options: argparse.Namespace) -> int:
    """Runs the proxy until SIGINT, SIGTERM or a closed output; returns 0."""
    classes = message_classes_from_options(options)
    secured = properties_from_options(options).settings
    settings = ProxySettings(
        rewrite=options.rewrite,
        advertised_host=options.advertised_host,
        first_broker_port=options.first_broker_port,
        show_secrets=options.show_secrets,
        tls=secured.get("tls", False),
        sasl=secured.get("sasl"),
        classes=classes,
    )
    shown = event_filter(options, classes)
    with _recorder(options.record, options.max_bytes) as recorder:
        asyncio.run(_serve(options, settings, shown, recorder))
    return 0


@contextlib.contextmanager
def _recorder(path: str | None, max_bytes: int) -> Iterator[Recorder | None]:
    if path is None:
        yield None
        return
    try:
        # Unbuffered, so that entries survive if the process is killed.
        file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise CommandError(f"cannot record to {path}: {error.strerror}") from None
    with file:
        try:
            recorder = Recorder(file, max_bytes)
        except OSError as error:
            raise CommandError(f"cannot record to {path}: {error.strerror}") from None
        yield recorder


class LineWriter:
    """Writes lines to a file descriptor in a thread, so that a slow reader blocks no caller.

    Lines that do not fit in the queue are dropped; `dropped_line` formats a line with the number of
    dropped lines. If a write fails, the thread calls `on_lost` once, and drops all later lines.
    """

    def __init__(
        self,
        fileno: int,
        dropped_line: Callable[[int], str],
        on_lost: Callable[[OSError], None],
        *,
        max_lines: int = _MAX_WAITING_LINES,
        close_timeout_s: float = _LOG_CLOSE_TIMEOUT_S,
    ) -> None:
        self._fileno = fileno
        self._dropped_line = dropped_line
        self._on_lost = on_lost
        self._close_timeout_s = close_timeout_s
        self._dropped = 0
        self._lines: queue.Queue[str | None] = queue.Queue(max_lines)
        # The thread is a daemon, so that a slow reader does not delay the end of the process.
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Queues a line to be written; drops and counts it if the queue is full."""
        try:
            if self._dropped:
                self._lines.put_nowait(self._dropped_line(self._dropped))
                self._dropped = 0
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Waits until the queued lines are written, but at most three times `close_timeout_s`.

        Queues a line with the number of dropped lines, then queues the end mark, then waits for the
        end of the thread. Each of the three steps may take `close_timeout_s`.
        """
        with contextlib.suppress(queue.Full):
            if self._dropped:
                self._lines.put(self._dropped_line(self._dropped), timeout=self._close_timeout_s)
            self._lines.put(None, timeout=self._close_timeout_s)
            self._thread.join(self._close_timeout_s)

    def _write(self) -> None:
        is_lost = False
        while (line := self._lines.get()) is not None:
            if is_lost:
                continue
            try:
                data = line.encode(sys.stdout.encoding or "utf-8", "backslashreplace") + b"\n"
                while data:
                    data = data[os.write(self._fileno, data) :]
            except OSError as error:
                is_lost = True
                self._on_lost(error)


async def _serve(
    options: argparse.Namespace,
    settings: ProxySettings,
    shown: EventFilter,
    recorder: Recorder | None,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)

    def on_lost(error: OSError) -> None:  # called in the thread of the log
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe
            loop.call_soon_threadsafe(stop.set)
            return
        print(f"kproto: the log ends: {error.strerror}; the proxy continues", file=sys.stderr)

    def dropped_line(count: int) -> str:
        lines = counted(count, "line")
        text = f"{lines} {were(count)} dropped here, because the log was not read in time"
        return json.dumps({"notice": text}) if options.json else text

    def write_line(line: str) -> None:
        log.put(line)

    def on_event(event: TrafficEvent, connection: int) -> None:
        if not shown.matches(event):
            return
        if options.json:
            data = event_as_json(event, connection, show_secrets=settings.show_secrets)
            write_line(json.dumps(data))
        else:
            write_line(event_as_text(event, connection, show_secrets=settings.show_secrets))

    def on_notice(text: str, connection: int | None) -> None:
        if options.json:
            data: dict[str, Any] = {"notice": text}
            if connection is not None:
                data["connection"] = connection
            write_line(json.dumps(data))
        else:
            write_line(text if connection is None else f"#{connection}: {text}")

    proxy = Proxy(
        options.listen,
        options.target,
        settings,
        on_event=None if options.quiet else on_event,
        on_notice=on_notice,
        recorder=recorder,
    )
    log = LineWriter(sys.stdout.fileno(), dropped_line, on_lost)
    try:
        async with proxy:
            on_notice(f"kproto proxy for {options.target} listens on {proxy.listens_at}", None)
            await stop.wait()
    finally:
        log.close()
