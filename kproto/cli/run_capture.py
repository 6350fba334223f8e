"""Lists the requests and responses in the file that `kproto capture` reads."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..protocol.message_classes import MessageClasses
from ..proxy import EventFilter
from ..study import Node, annotate_frame, to_text
from ..study.conversations import EventKind, Side, TrafficEvent
from ..study.exchanges import (
    ClientSoftware,
    Exchange,
    exchange_as_json,
    exchange_as_text,
    exchange_with_messages,
    note_software,
    pair_exchanges,
    software_as_json,
    software_as_table,
    stats_as_json,
    stats_as_table,
    stats_by_api,
)
from ..study.flows import ConnectionEvent, OtherTraffic, events_of_recording, events_of_segments
from ..study.pcap import SkippedPackets, is_capture, read_segments
from ..study.recording import is_recording, read_recording
from ..wire.checks import check_whole_number
from ..wire.counted import counted
from ..wire.errors import ConfigurationError, DecodeError, KprotoError
from .command_error import CommandError
from .run_proxy import event_filter
from .selection import message_classes_from_options

__all__ = ["run"]

#: How many bytes at the start of a file identify its format.
_START_BYTES: Final = 64

#: Columns of a line if the output is not a terminal.
_WIDTH: Final = 100

#: Bytes read between two updates of the progress bar.
_BAR_STEP: Final = 4_194_304


def run(options: argparse.Namespace) -> int:
    """Prints the list of exchanges, their statistics by API or a single exchange; returns 0.

    An exchange is a request with its response.
    """
    for port in options.ports or ():
        check_whole_number("--port", port, 1, 65_535)
    if options.open is not None:
        check_whole_number("--open", options.open, 1)
        for name in ("stats", "apis", "client_ids"):
            if getattr(options, name):
                word = {"apis": "api", "client_ids": "client-id"}.get(name, name)
                raise ConfigurationError(
                    f"--{word} has no effect with --open, whose number counts all lines: omit it"
                )
    elif options.show_secrets:
        raise ConfigurationError("--show-secrets needs --open N")
    classes = message_classes_from_options(options)
    shown = event_filter(options, classes)
    skipped, other_traffic = SkippedPackets(), OtherTraffic()
    try:
        with _opened_file(options.file) as file:
            events = _events(file, options, classes, skipped, other_traffic)
            code = _print(pair_exchanges(events), options, shown)
            if options.open is None:
                sys.stdout.flush()
                _report_skipped(skipped, other_traffic)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _print(exchanges: Iterator[Exchange], options: argparse.Namespace, shown: EventFilter) -> int:
    if options.open is not None:
        return _print_opened(exchanges, options)
    chosen = (exchange for exchange in exchanges if shown.matches(exchange.event))
    if options.stats:
        _print_stats(chosen, options)
        return 0
    for exchange in chosen:
        print(
            json.dumps(exchange_as_json(exchange)) if options.json else exchange_as_text(exchange)
        )
    return 0


def _print_stats(chosen: Iterator[Exchange], options: argparse.Namespace) -> None:
    """Prints the numbers, sizes, errors and latencies by API, and the software of the clients.

    If the file has an error, prints the sums of the exchanges before the error, then raises the
    error.
    """
    missing_bytes = gaps = 0
    broken: DecodeError | None = None

    def readable() -> Iterator[Exchange]:
        nonlocal missing_bytes, gaps, broken
        try:
            for exchange in chosen:
                if exchange.event.kind is EventKind.MISSING:
                    missing_bytes += exchange.event.size
                    gaps += 1
                yield exchange
        except DecodeError as error:
            broken = error

    software: ClientSoftware = {}
    stats = stats_by_api(note_software(readable(), software))
    if options.json:
        data = stats_as_json(stats) | {"client_software": software_as_json(software)}
        print(json.dumps(data, indent=2))
    else:
        print("\n".join(stats_as_table(stats)))
        if software:
            print("", *software_as_table(software), sep="\n")
    sys.stdout.flush()
    if gaps:
        _report(
            f"{counted(missing_bytes, 'byte')}, at {counted(gaps, 'place')}, were not captured, or "
            "were skipped up to the next frame: the sums lack their messages, or count them as "
            "unanswered"
        )
    if broken is not None:
        raise broken


def _print_opened(exchanges: Iterator[Exchange], options: argparse.Namespace) -> int:
    found = next(itertools.islice(exchanges, options.open - 1, None), None)
    if found is None:
        raise CommandError(f"there is no line {options.open} in {options.file}")
    data = exchange_with_messages(found, show_secrets=options.show_secrets)
    if options.json:
        print(json.dumps(data))
        return 0
    print(exchange_as_text(found))
    for name, event in (("request", found.request), ("response", found.response)):
        if event is None or not event.data:
            continue
        print(f"{name}:")
        tree = _annotated(event)
        if tree is not None:
            width = shutil.get_terminal_size((_WIDTH, 0)).columns
            print("\n".join(to_text(tree, width=width, show_secrets=options.show_secrets)))
        else:
            shown = data.get(name, data.get(f"{name}_bytes"))
            print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0


def _annotated(event: TrafficEvent) -> Node | None:
    """Returns the tree of a frame as in `kproto decode`; None if kproto cannot read the message."""
    if event.kind not in (EventKind.MESSAGE, EventKind.BROKEN) or event.api_key is None:
        return None
    try:
        return annotate_frame(
            event.data,
            event.api_key,
            None if event.received is None else event.received.version,
            response=event.side is Side.BROKER,
            part="frame",
            classes=event.classes,
        )
    except KprotoError:
        return None


def _events(
    file: BinaryIO,
    options: argparse.Namespace,
    classes: MessageClasses,
    skipped: SkippedPackets,
    other_traffic: OtherTraffic,
) -> Iterator[ConnectionEvent]:
    start = file.read(_START_BYTES)
    whole = io.BufferedReader(_PrefixedFile(start, file), 1 << 20)
    keep = options.open is not None
    if is_recording(start):
        if options.ports:
            raise ConfigurationError("--port is for captures, and the file is a recording: omit it")

        def note_truncation(line: int) -> None:
            skipped.truncation = f"line {line} is not whole"

        entries = read_recording(whole, note_truncation)
        return events_of_recording(entries, keep_bytes=keep, classes=classes)
    if is_capture(start):
        ports = frozenset(options.ports or ())
        return events_of_segments(
            read_segments(whole, skipped),
            ports,
            other_traffic,
            keep_bytes=keep,
            classes=classes,
        )
    raise DecodeError(
        f"{options.file} is neither a recording of kproto proxy nor a pcap or pcapng file"
    )


@contextlib.contextmanager
def _opened_file(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from None
    with file:
        yield file


class _PrefixedFile(io.RawIOBase):
    """Reads `start`, which was read from the file already, then the rest of the file.

    Prints a progress bar if the standard error is a terminal and the standard output is not.
    """

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file
        self._read = 0
        self._size = 0
        if sys.stderr.isatty() and not sys.stdout.isatty():
            with contextlib.suppress(OSError, ValueError):
                self._size = os.fstat(file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:  # Python 3.11 has no type for buffers
        buffer = memoryview(into).cast("B")
        try:
            data = self._start[: len(buffer)] or self._file.read(len(buffer))
        except OSError as error:
            raise DecodeError(f"the file cannot be read further: {error.strerror}") from None
        self._start = self._start[len(data) :]
        buffer[: len(data)] = data
        self._move(len(data))
        return len(data)

    def _move(self, count: int) -> None:
        before, self._read = self._read, self._read + count
        if not self._size or self._size < _BAR_STEP:
            return
        if before // _BAR_STEP != self._read // _BAR_STEP or not count:
            part = min(1.0, self._read / self._size)
            bar = "#" * int(part * 40)
            sys.stderr.write(f"\r[{bar:<40}] {part:4.0%}{'' if count else chr(10)}")
            sys.stderr.flush()


def _report_skipped(skipped: SkippedPackets, other_traffic: OtherTraffic) -> None:
    if skipped.truncation is not None:
        _report(f"the capture ends early: {skipped.truncation}; all before it was read")
    if skipped.broken:
        _report(f"packets that could not be read: {skipped.broken}")
    if skipped.truncated:
        _report(f"packets that were captured in part (tcpdump -s 0 avoids it): {skipped.truncated}")
    if skipped.fragments:
        _report(f"fragments of incomplete IP packets: {skipped.fragments}")
    if other_traffic.other_ports:
        _report(
            f"packets of other ports than --port, which were skipped: {other_traffic.other_ports}"
        )
    if other_traffic.connections:
        _report(f"connections without any Kafka request: {other_traffic.connections}")


def _report(text: str) -> None:
    print(f"kproto: {text}", file=sys.stderr)
