"""Prints the records of `kproto consume`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..clock import SYSTEM_CLOCK
from ..security.properties import read_values
from ..wire.counted import counted
from ..wire.errors import ConfigurationError, DecodeError, KprotoError
from .added_partitions import PartitionWatch, with_added
from .command_error import CommandError
from .last_records import find_last_records
from .name_patterns import subscribed, topics_of
from .open_client import client_of, properties_of
from .output import PieceWriter
from .progress import Progress
from .record_output import formatter, is_value_only, record_filter
from .signals import run_until_signal
from .tables import named
from .times import moment_of

if TYPE_CHECKING:
    from datetime import datetime

    from ..client import Client, Consumer, GroupConsumer, TopicPartition
    from ..records.record import Record

__all__ = ["run"]

#: The time of one poll in ms. With `--until-end` a member of a group checks after each poll without
#: records whether it has any lag, so such a poll ends earlier.
_POLL_MS: Final = 500
_POLL_TO_END_MS: Final = 100

#: The longest time in s of the commit of the printed records after Ctrl-C or SIGTERM.
_STOP_S: Final = 10

#: Maximum number of records of one poll, which are printed at once.
_POLL_RECORDS: Final = 10_000

#: Maximum number of values that are joined for one write, which bounds the memory of the lines.
_VALUES_A_WRITE: Final = 2_000


class _Fetched(NamedTuple):
    """Records, or only values, of one partition that are printed together."""

    tp: TopicPartition
    items: Sequence[Any]
    next_offset: int
    high_watermark: int


def run(options: argparse.Namespace) -> int:
    """Prints records until the end that `options` name; returns 0, or 1 for invalid events."""
    properties = properties_of(options, os.environ)
    if options.group is None and not options.is_tail:
        options.group = properties.get("group.id")
    _check(options)
    return run_until_signal(_Printing(options, properties).run(), prints=True)


def _check(options: argparse.Namespace) -> None:
    for name in ("count", "last", "offset"):
        number = getattr(options, name)
        if number is not None and number < 0:
            raise ConfigurationError(f"--{name} must not be negative")
    if options.group is None:
        return
    for name, given in (
        ("--partition", options.partitions),
        ("--last", options.last is not None),
        ("--offset", options.offset is not None),
        ("--until", options.until is not None),
    ):
        if given:
            raise ConfigurationError(
                f"{name} is for consumers without --group: the group has committed offsets "
                "(kproto groups changes them)"
            )


def _start_of(text: str) -> datetime:
    """Returns the time of `--from` as the start of a consumer."""
    from datetime import UTC, datetime, timedelta  # here, because most commands need no time

    moment = moment_of("--from", text)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)


class _Printing:
    """Prints the records of one command."""

    def __init__(self, options: argparse.Namespace, properties: Mapping[str, Any]) -> None:
        self._options = options
        # Arguments override the properties, which override the defaults of the command.
        self._arguments: dict[str, Any] = {}
        if options.isolation is not None:
            self._arguments["read_committed"] = options.isolation == "read_committed"
        self._read_committed = options.isolation == "read_committed" or (
            options.isolation is None and properties.get("isolation.level") == "read_committed"
        )
        self._has_reset = "auto.offset.reset" in properties
        self._commits: bool = read_values(properties).group.get("auto_commit", True)
        self._format = formatter(options)
        self._matches = record_filter(options)
        self._left = options.count
        self._lag: dict[TopicPartition, int] = {}
        #: The time of --until in ms: later records are not printed.
        self._until: int | None = None
        self._invalid = 0
        shown = options.progress or (sys.stderr.isatty() and not sys.stdout.isatty())
        self._progress = Progress(shown=shown and not options.quiet)
        self._shown = shown and not options.quiet

    async def run(self) -> int:
        try:
            async with client_of(self._options) as client:
                if self._options.group is None:
                    await self._read(client)
                else:
                    await self._read_in_group(client)
        finally:
            self._progress.end(summary=self._shown)
        return 1 if self._invalid else 0

    # Without a group

    async def _read(self, client: Client) -> None:
        options = self._options
        partitions = await self._partitions(client)
        if self._left == 0 or not partitions:
            return
        if options.until is not None:
            until = moment_of("--until", options.until)
            if until > SYSTEM_CLOCK.now_ms():
                raise ConfigurationError("--until is in the future; --timeout ends a silent topic")
            self._until = until
        only_values = is_value_only(options) and self._left is None and self._until is None
        start = await self._start(client, partitions)
        async with AsyncExitStack() as stack:
            opened = self._open(client, partitions, start, only_values=only_values)
            lists: AsyncIterator[_Fetched] = await stack.enter_async_context(opened)
            if not options.partitions and not self._has_end:
                watch = PartitionWatch(client, options.topics, partitions)
                both = with_added(
                    lists,
                    watch,
                    lambda tps: self._open(client, tps, "earliest", only_values=only_values),
                )
                lists = await stack.enter_async_context(aclosing(both))
            async for fetched in self._until_quiet(lists):
                if await self._print(fetched, only_values=only_values):
                    return
                del fetched  # frees its records before the next are decoded

    @property
    def _has_end(self) -> bool:
        """True if the command ends at offsets that it finds at its start."""
        return bool(self._options.until_end) or self._options.until is not None

    @asynccontextmanager
    async def _open(
        self, client: Client, tps: list[TopicPartition], start: Any, *, only_values: bool
    ) -> AsyncGenerator[AsyncIterator[_Fetched]]:
        """Opens a consumer of partitions; yields its records, in lists."""
        consumer = client.consumer(
            tps, group=None, start=start, stop_at_end=self._has_end, **self._arguments
        )
        async with consumer, aclosing(self._fetched(consumer, only_values=only_values)) as lists:
            yield lists

    async def _partitions(self, client: Client) -> list[TopicPartition]:
        """Returns the partitions to read.

        Raises CommandError for a missing partition, and for a pattern that matches no topic.
        """
        found: list[TopicPartition] = []
        for name in await topics_of(client, dict.fromkeys(self._options.topics), needs_match=True):
            there = sorted((await client.topic(name)).partitions)
            for number in self._options.partitions:
                if number not in there:
                    raise CommandError(
                        f"{name} has no partition {number}: it has "
                        f"{counted(len(there), 'partition')}"
                    )
            found += [(name, n) for n in self._options.partitions or there]
        return found

    async def _start(self, client: Client, partitions: Iterable[TopicPartition]) -> Any:
        options = self._options
        if options.from_beginning:
            return "earliest"
        if options.offset is not None:
            return dict.fromkeys(partitions, options.offset)
        if options.from_time is not None:
            return _start_of(options.from_time)
        if options.last is not None:
            return await find_last_records(
                client, partitions, options.last, read_committed=self._read_committed
            )
        return "earliest" if options.until_end or options.until is not None else "latest"

    @staticmethod
    async def _fetched(consumer: Consumer, *, only_values: bool) -> AsyncGenerator[_Fetched, None]:
        if only_values:
            async for part in consumer.values():
                tp = (part.topic, part.partition)
                fetched = _Fetched(tp, part.values, part.next_offset, part.high_watermark)
                del part  # no reference to the records remains here while they are printed
                yield fetched
                del fetched
            return
        async for each in consumer.record_lists():
            tp = (each.topic, each.partition)
            end = each.records[-1].offset + 1
            fetched = _Fetched(tp, each.records, end, each.high_watermark)
            del each
            yield fetched
            del fetched

    async def _until_quiet(self, lists: AsyncIterator[_Fetched]) -> AsyncIterator[_Fetched]:
        """Yields `lists` until no record has arrived for `--timeout`."""
        if self._options.timeout is None:
            async for fetched in lists:
                yield fetched
                del fetched
            return
        while True:
            task = asyncio.ensure_future(anext(lists, None))
            try:
                done, _ = await asyncio.wait([task], timeout=self._options.timeout / 1000)
            finally:
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
            if not done or (found := task.result()) is None:
                return
            yield found

    # With a group

    async def _read_in_group(self, client: Client) -> None:
        options = self._options
        arguments = dict(self._arguments)
        if options.from_beginning:
            arguments["start"] = "earliest"
        elif options.from_time is not None:
            arguments["start"] = _start_of(options.from_time)
        elif not self._has_reset:
            arguments["start"] = "latest"
        partitions = await self._partitions(client)
        if self._left == 0:
            return
        async with client.consumer(
            subscribed(options.topics),
            group=options.group,
            auto_commit=False,
            **arguments,
        ) as consumer:
            poll_ms = _POLL_TO_END_MS if options.until_end else _POLL_MS
            quiet_since = SYSTEM_CLOCK.monotonic()
            started: frozenset[TopicPartition] = frozenset()
            while True:
                most = _POLL_RECORDS if self._left is None else min(self._left, _POLL_RECORDS)
                polled = await consumer.poll(poll_ms, most)
                if self._commits and consumer.assignment != started:
                    await self._commit_starts(consumer, consumer.assignment - started, polled)
                    started = consumer.assignment
                if polled:
                    quiet_since = SYSTEM_CLOCK.monotonic()
                    await self._print_and_commit(consumer, polled)
                    if self._left == 0:
                        return
                elif await self._is_over(consumer, quiet_since):
                    if options.until_end and not options.quiet:
                        others = [tp for tp in partitions if tp not in consumer.assignment]
                        await self._warn_of_unread(client, consumer, others)
                    return

    async def _print_and_commit(
        self, consumer: GroupConsumer, polled: Mapping[TopicPartition, list[Record]]
    ) -> None:
        """Prints the records of a poll, and commits them then.

        A write that fails commits nothing of them; if the task is cancelled, commits the records
        that are printed.
        """
        writer = PieceWriter()
        printed: dict[TopicPartition, int] = {}
        try:
            for tp, records in polled.items():
                lines = self._lines_of(records)
                try:
                    await writer.write([line for _, line in lines])
                finally:
                    if writer.count:
                        printed[tp] = lines[writer.count - 1][0].offset + 1
                self._count(tp, len(lines), sum(len(line) for _, line in lines), 0)
            if self._commits:
                await consumer.commit(polled)
        except asyncio.CancelledError:
            if printed and self._commits:
                with suppress(KprotoError, TimeoutError):  # they are printed again
                    async with asyncio.timeout(_STOP_S):
                        await consumer.commit(printed)
            raise

    @staticmethod
    async def _commit_starts(
        consumer: GroupConsumer,
        assigned: Iterable[TopicPartition],
        polled: Mapping[TopicPartition, Sequence[Record]],
    ) -> None:
        """Commits the start positions of assigned partitions without a committed offset.

        A later run without a start option then continues there, and skips no record that arrived
        meanwhile.
        """
        tps = list(assigned)
        if not tps:
            return
        committed = await consumer.committed(*tps)
        starts: dict[TopicPartition, int] = {}
        for tp in tps:
            if committed.get(tp) is None:
                first = polled.get(tp)
                starts[tp] = first[0].offset if first else await consumer.position(tp)
        if starts:
            await consumer.commit(starts)

    async def _warn_of_unread(
        self, client: Client, consumer: GroupConsumer, tps: Sequence[TopicPartition]
    ) -> None:
        """Prints a warning about those partitions of other members that have any lag."""
        if not tps:
            return
        first = await client.list_offsets(dict.fromkeys(tps, "earliest"))
        ends = await client.list_offsets(
            dict.fromkeys(tps, "latest"), read_committed=self._read_committed
        )
        committed = await consumer.committed(*tps)
        unread = []
        for tp in tps:
            offset = committed.get(tp)
            if (first[tp] if offset is None else offset.offset) < ends[tp]:
                unread.append(f"{tp[0]}:{tp[1]}")
        if unread:
            group = self._options.group
            print(
                f"kproto: warning: not read, because other members of the group {group} have them: "
                f"{named(unread, 'partition')}. A member that was killed keeps its partitions "
                f"until its session times out (kproto groups describe {group})",
                file=sys.stderr,
            )

    async def _is_over(self, consumer: GroupConsumer, quiet_since: float) -> bool:
        quiet_ms = (SYSTEM_CLOCK.monotonic() - quiet_since) * 1000
        if self._options.timeout is not None and quiet_ms >= self._options.timeout:
            return True
        if not self._options.until_end or not consumer.assignment:
            return False
        return not any((await consumer.lag()).values())

    # Printing

    async def _print(self, fetched: _Fetched, *, only_values: bool) -> bool:
        """Prints records; returns True if no further record is wanted."""
        writer = PieceWriter()
        if only_values:
            count, size = len(fetched.items), 0
            for at in range(0, count, _VALUES_A_WRITE):
                lines = self._value_lines(fetched.items[at : at + _VALUES_A_WRITE])
                await writer.write([lines])
                size += len(lines)
        else:
            found = self._lines_of(fetched.items)
            lines = b"".join([line for _, line in found])
            await writer.write([lines])
            count, size = len(found), len(lines)
        self._count(fetched.tp, count, size, fetched.high_watermark - fetched.next_offset)
        is_over: bool = self._left == 0
        return is_over

    def _count(self, tp: TopicPartition, count: int, size: int, lag: int) -> None:
        """Adds printed records to the progress."""
        self._lag[tp] = max(0, lag)
        self._progress.add(count, size, f", lag {sum(self._lag.values()):,}")

    def _value_lines(self, values: Sequence[bytes | None]) -> bytes:
        end: bytes = self._options.delimiter
        try:
            return end.join([*values, b""])  # type: ignore[list-item]  # raises TypeError for null
        except TypeError:
            null = self._options.null.encode("utf-8", "surrogateescape")
            return end.join([*(null if value is None else value for value in values), b""])

    def _lines_of(self, records: Sequence[Record]) -> list[tuple[Record, bytes]]:
        """Returns the records that are printed, with their lines."""
        until = self._until
        if until is not None:  # times need not be in order: a record before may follow
            records = [record for record in records if record.timestamp < until]
        if self._matches is not None:
            records = [record for record in records if self._matches(record)]
        if self._left is not None:
            records = records[: self._left]
            self._left -= len(records)
        lines: list[tuple[Record, bytes]] = []
        for record in records:
            try:
                lines.append((record, self._format(record)))
            except DecodeError as error:
                self._invalid += 1
                print(
                    f"kproto: {record.topic}, partition {record.partition}, offset "
                    f"{record.offset} {error}",
                    file=sys.stderr,
                )
        return lines
