"""Sends the records of `kproto produce`."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import stat
import sys
from codecs import BOM_UTF8
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ..client import Client, DeliveryError, Producer, ProducerRecord
from ..client.producer_record import as_record
from ..clock import SYSTEM_CLOCK
from ..security.properties import read_values
from ..wire.counted import counted, were
from ..wire.errors import ConfigurationError, EncodeError, KprotoError
from .command_error import CommandError
from .input_chunks import STDIN, InputEnd, read_input
from .open_client import client_of, properties_of
from .progress import Progress
from .record_input import LineSplitter, keyed, keyed_records
from .record_json import input_line, record_of_line
from .signals import run_until_signal
from .terminal_words import terminal_text
from .times import moment_of

__all__ = ["run"]

#: Maximum number of calls of `send_many` in flight; each has the lines of some chunks of input.
_MAX_CALLS: Final = 12

#: Maximum number of lines of one call; a chunk of input has fewer lines, unless they are empty.
_MAX_LINES: Final = 100_000

#: With `--rate`: the time in s between two calls.
_RATE_INTERVAL_S: Final = 0.1

_Values: TypeAlias = Sequence[bytes | ProducerRecord | None]


class _InvalidLineError(Exception):
    """A line is no record; `before` has the records of the lines before it, by topic."""

    def __init__(self, before: list[tuple[str, _Values]], error: EncodeError) -> None:
        super().__init__(str(error))
        self.before = before
        self.error = error


class _Lines(NamedTuple):
    """Lines of the input; `first` is the number of the first line, from 1."""

    lines: list[bytes]
    first: int


def run(options: argparse.Namespace) -> int:
    """Sends all records; returns 0, or 1 if a record was not acknowledged."""
    properties = properties_of(options, os.environ)
    if options.transactional_id is None:
        options.transactional_id = properties.get("transactional.id")
    _check(options)
    creates = read_values(properties).consumer.get("allow_auto_create_topics", False)
    return run_until_signal(_Sending(options, creates_topics=creates).run())


def _check(options: argparse.Namespace) -> None:
    if options.topic is None and not options.json:
        raise ConfigurationError("name the topic: kproto produce TOPIC")
    if options.transaction_records is not None and options.transactional_id is None:
        raise ConfigurationError("--transaction-records needs --transactional-id ID")
    for name in ("rate", "transaction_records"):
        number = getattr(options, name)
        if number is not None and number <= 0:
            raise ConfigurationError(f"--{name.replace('_', '-')} must be more than 0")
    if options.key_separator is not None and (options.json or options.cloudevents or options.whole):
        raise ConfigurationError("--key-separator is for plain lines")
    if options.undelivered is not None and options.transactional_id is not None:
        raise ConfigurationError(
            "--undelivered is for records without a transaction: an aborted transaction stores no "
            "record, and the command says from which line to send the input again"
        )
    if options.undelivered is not None:
        try:
            with Path(options.undelivered).open("ab"):
                pass
        except OSError as error:
            raise CommandError(
                f"--undelivered {options.undelivered} cannot be written: {error.strerror}"
            ) from None
    for path in options.files:
        _check_file(path)
    if options.key is not None and options.key_separator is not None:
        raise ConfigurationError("--key and --key-separator exclude each other")


def _check_file(path: str) -> None:
    """Raises CommandError for an input that cannot be read, before any record is sent.

    Opens no file: a pipe can be opened only once.
    """
    if path == STDIN:
        return
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(mode) or not os.access(path, os.R_OK):
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EACCES
        raise CommandError(f"{path} cannot be read: {os.strerror(code)}")


_Converted: TypeAlias = tuple[bytes | ProducerRecord | None, str | None]


def converter(options: argparse.Namespace) -> Callable[[bytes], _Converted] | None:
    """Returns the function that converts a line to a record (or its value alone) and its topic.

    Returns None if each line is a value. The topic is None if the line has none.
    """
    read = _reader(options)
    # The headers of an event must fit its attributes, and `record_of_event_line` adds them.
    headers = () if options.cloudevents else options.headers
    changes = _changes(options)
    if not changes and not headers and not options.empty_as_null:
        return read

    def convert(line: bytes) -> _Converted:
        found, topic = (line, None) if read is None else read(line)
        record = found if isinstance(found, ProducerRecord) else ProducerRecord(found)
        if options.empty_as_null:
            record = record._replace(key=record.key or None, value=record.value or None)
        if headers:
            record = record._replace(headers=[*record.headers, *headers])
        return record._replace(**changes), topic

    return convert


def only_separator(options: argparse.Namespace) -> bytes | None:
    """Returns the key separator if no other option changes records; None otherwise.

    `keyed_records` then converts many lines in less time than `converter`'s function.
    """
    if _changes(options) or options.headers or options.empty_as_null:
        return None
    separator: bytes | None = options.key_separator
    return separator


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields that options set in every record."""
    changes: dict[str, Any] = {}
    if options.key is not None:
        changes["key"] = options.key.encode("utf-8", "surrogateescape")
    if options.partition is not None:
        changes["partition"] = options.partition
    elif options.repartition:
        changes["partition"] = None
    if options.timestamp is not None:
        changes["timestamp"] = moment_of("--timestamp", options.timestamp)
    return changes


def _reader(options: argparse.Namespace) -> Callable[[bytes], _Converted] | None:
    if options.json:
        return record_of_line
    if options.cloudevents:
        from .event_lines import record_of_event_line

        return lambda line: (
            record_of_event_line(line, options.cloudevents, options.headers),
            None,
        )
    if options.key_separator is not None:
        return lambda line: (keyed(line, options.key_separator), None)
    return None


class _Sending:
    """Sends the input of one command."""

    def __init__(self, options: argparse.Namespace, *, creates_topics: bool) -> None:
        self._options = options
        #: Whether the broker may create the topic: allow.auto.create.topics of the properties.
        self._creates_topics = creates_topics
        self._convert = converter(options)
        self._only_separator = only_separator(options)
        #: Whether each line is a JSON object; then blank lines are no records.
        self._is_json = bool(options.json or options.cloudevents)
        shown = not options.quiet and (options.progress or sys.stderr.isatty())
        self._progress = Progress(shown=shown)
        self._shown = shown
        self._failed: list[tuple[str, ProducerRecord]] = []
        #: The number of failed records that a broker may have stored.
        self._unknown = 0
        self._failure: KprotoError | None = None
        self._last_line = 0
        self._committed_line = 0
        self._is_committing = False
        self._is_read = False
        self._calls: deque[asyncio.Task[None]] = deque()

    async def run(self) -> int:
        options = self._options
        arguments: dict[str, Any] = {
            name: getattr(options, name)
            for name in ("compression", "transactional_id")
            if getattr(options, name) is not None
        }
        if self._creates_topics:
            arguments["allow_auto_create_topics"] = True
        if options.acks is not None:
            arguments["acks"] = "all" if options.acks == "all" else int(options.acks)
            if options.acks != "all":
                arguments["idempotent"] = False
        try:
            async with client_of(options) as client, client.producer(**arguments) as producer:
                await self._check_topic(client)
                await self._send_all(producer)
        except BaseException as error:
            if isinstance(error, KprotoError):
                self._failure = self._failure or error
            self._end(is_whole=False)
            raise
        self._end(is_whole=self._failure is None)
        if self._failure is not None:
            print(f"kproto: error: {terminal_text(self._failure)}", file=sys.stderr)
            return 1
        return 0

    def _end(self, *, is_whole: bool) -> None:
        """Ends the progress, stores undelivered records, and says what was not sent."""
        self._progress.end(summary=self._shown)
        if self._options.transactional_id is not None:
            if not is_whole:
                print(f"kproto: {self._aborted()}", file=sys.stderr)
            return
        if self._failed:
            count = len(self._failed)
            print(
                f"kproto: {counted(count, 'record')} {were(count)} not acknowledged in "
                f"all: {self._store_failed()}",
                file=sys.stderr,
            )
            print(f"kproto: {self._stored_words()}", file=sys.stderr)
        if not is_whole and self._last_line and not self._is_read:
            print(
                f"kproto: the input was read up to line {self._last_line}, and not further",
                file=sys.stderr,
            )

    def _stored_words(self) -> str:
        """Returns words that tell the failed records that may be stored from the others."""
        count = len(self._failed)
        if not self._unknown:
            return "it was not stored" if count == 1 else "none of them was stored"
        which = "it" if count == 1 else "all of them"
        if self._unknown < count:
            which = f"{self._unknown} of them"
        again = "sending it again may store it twice"
        if count > 1:
            again = "sending them again may store them twice; the others were not stored"
            if self._unknown == count:
                again = "sending them again may store them twice"
        return f"{which} may have been stored, because no broker has said so: {again}"

    def _aborted(self) -> str:
        """Returns words that say which lines are stored after a transaction has failed."""
        if self._is_committing:
            return (
                f"the commit of lines {self._committed_line + 1} to {self._last_line} did not end: "
                "read the topic with --isolation read_committed before you send them again"
            )
        stored = f"lines 1 to {self._committed_line} are" if self._committed_line else "no line is"
        return (
            f"a transaction was aborted: {stored} committed; send the input again from line "
            f"{self._committed_line + 1}"
        )

    async def _check_topic(self, client: Client) -> None:
        """Raises BrokerResponseError now if the topic does not exist, not at the first record.

        Checks nothing if the broker may create the topic.
        """
        if self._options.topic is not None and not self._creates_topics:
            await client.topic(self._options.topic)

    async def _send_all(self, producer: Producer) -> None:
        async with aclosing(self._input()) as batches:
            if self._options.transactional_id is None:
                await self._send_until(producer, batches, None)
                return
            most = self._options.transaction_records
            is_over = False
            while not is_over and self._failure is None:
                async with producer.transaction():
                    is_over = await self._send_until(producer, batches, most)
                    if self._failure is not None:
                        raise self._failure  # aborts the transaction
                    self._is_committing = True
                self._is_committing = False
                self._committed_line = self._last_line

    async def _send_until(
        self, producer: Producer, batches: AsyncIterator[_Lines], most: int | None
    ) -> bool:
        """Sends up to `most` records and waits for their acks; returns True at the input's end."""
        sent = 0
        try:
            async for lines in batches:
                self._last_line = lines.first + len(lines.lines) - 1
                await self._send(producer, lines)
                sent += len(lines.lines)
                if self._failure is not None:
                    return True
                if most is not None and sent >= most:
                    return False
            self._is_read = True
            return True
        except EncodeError as error:
            self._failure = error
            return True
        except asyncio.CancelledError:
            if self._options.transactional_id is None:
                await self._flush(producer)
            else:  # the transaction is aborted
                for call in self._calls:
                    call.cancel()
            raise
        finally:
            while self._calls:
                await asyncio.wait([self._calls.popleft()])

    async def _flush(self, producer: Producer) -> None:
        """Waits up to `--flush-timeout` for the acks of the records that were read."""
        with suppress(DeliveryError):  # the calls raise it, too
            await producer.close(timeout_ms=self._options.flush_timeout)

    async def _input(self) -> AsyncGenerator[_Lines, None]:
        """Yields the lines of all files, as many as are sent together."""
        options = self._options
        number = 1
        splitter = LineSplitter(options.delimiter)
        whole: list[bytes] = []
        async with aclosing(read_input(options.files or [STDIN])) as chunks:
            async for chunk in chunks:
                if options.whole:
                    if isinstance(chunk, bytes):
                        whole.append(chunk)
                        continue
                    lines, whole = [b"".join(whole)], []
                elif isinstance(chunk, InputEnd):
                    lines = splitter.finish()
                else:
                    lines = splitter.feed(chunk)
                while lines:
                    size = min(len(lines), self._next_size(number - 1))
                    part, lines = lines[:size], lines[size:]
                    yield _Lines(part, number)
                    number += len(part)
                    if options.rate is not None:
                        await self._wait_for_rate(number - 1)

    def _next_size(self, sent: int) -> int:
        """Returns the most lines that are sent at once after `sent` lines."""
        sizes = [_MAX_LINES]
        if self._options.rate is not None:
            sizes.append(max(1, int(self._options.rate * _RATE_INTERVAL_S)))
        most = self._options.transaction_records
        if most is not None:
            sizes.append(most - sent % most)
        return min(sizes)

    async def _wait_for_rate(self, sent: int) -> None:
        due = self._progress.begun + sent / self._options.rate
        wait = due - SYSTEM_CLOCK.monotonic()
        if wait > 0:
            await SYSTEM_CLOCK.sleep(wait)

    async def _send(self, producer: Producer, lines: _Lines) -> None:
        """Starts to send lines; waits for the oldest call if too many are in flight."""
        error: EncodeError | None = None
        try:
            parts = self._by_topic(lines)
        except _InvalidLineError as invalid:
            parts, error = invalid.before, invalid.error
        for topic, values in parts:
            size = sum(map(len, lines.lines)) if self._shown and len(parts) == 1 else 0
            self._calls.append(asyncio.create_task(self._call(producer, topic, values, size)))
        await asyncio.sleep(0)
        while len(self._calls) >= _MAX_CALLS:
            # Not `await call`: Ctrl-C would cancel the call, and its records could be stored.
            await asyncio.wait([self._calls[0]])
            self._calls.popleft().result()
        if error is not None:
            raise error

    def _by_topic(self, lines: _Lines) -> list[tuple[str, _Values]]:
        """Returns the records by topic; the topic of the command line overrides those of lines.

        Raises _InvalidLineError.
        """
        named: str | None = self._options.topic
        if self._convert is None:
            assert named is not None  # `_check` has found it
            return [(named, lines.lines)]
        if self._only_separator is not None and named is not None:
            return [(named, keyed_records(lines.lines, self._only_separator))]
        topics: dict[str, list[bytes | ProducerRecord | None]] = {}
        for at, text in enumerate(lines.lines, lines.first):
            line = text
            if self._is_json:
                line = text.removeprefix(BOM_UTF8)
                if not line.strip():
                    continue
            try:
                record, topic = self._convert(line)
                topic = named or topic
                if topic is None:
                    raise EncodeError("has no topic, and no TOPIC was given")
            except EncodeError as error:
                self._last_line = at
                raise _InvalidLineError(
                    list(topics.items()), EncodeError(f"line {at} {error}")
                ) from None
            topics.setdefault(topic, []).append(record)
        return list(topics.items())

    async def _call(self, producer: Producer, topic: str, values: _Values, size: int) -> None:
        # An iterator tells which records were not read after an EncodeError, and is slower.
        elements = values if self._options.undelivered is None else iter(values)
        try:
            await producer.send_many(topic, elements)
        except asyncio.CancelledError:
            # Some may have been acknowledged: sending them again may double, and never loses.
            self._failed += [(topic, as_record(each)) for each in values]
            self._unknown += len(values)
            raise
        except DeliveryError as error:
            failed = [(topic, record) for record in error.records]
            if isinstance(elements, Iterator):
                failed += [(topic, as_record(each)) for each in elements]
            self._failed += failed
            self._unknown += len(error.unknown)
            self._failure = self._failure or error
            self._progress.add(len(values) - len(failed), 0)
        except KprotoError as error:
            self._failure = self._failure or error
            if isinstance(elements, Iterator):
                unread = 1 + sum(1 for _ in elements)
                self._failed += [(topic, as_record(each)) for each in values[-unread:]]
        else:
            self._progress.add(len(values), size)

    def _store_failed(self) -> str:
        """Writes the records that were not acknowledged; returns words that say where they are."""
        path = self._options.undelivered
        if path is None:
            return "--undelivered names no file for them"
        lines = [input_line(topic, record) + b"\n" for topic, record in self._failed]
        try:
            Path(path).write_bytes(b"".join(lines))
        except OSError as error:
            sys.stderr.flush()
            sys.stderr.buffer.write(b"".join(lines))
            return f"{path} cannot be written ({error.strerror}), so they are printed here"
        return f"written to {path}"
