"""A program that consumes, transforms and produces in transactions; the exactly-once test kills it.

The program copies each record of the input topic to the same partition of the output topic, and
commits the offsets of its group with the records. The program ends with exit code 3 if it needs a
new producer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys

import kproto

__all__ = ["NEEDS_PRODUCER", "WAYS", "main"]

#: With `loop`, the program polls in its own loop. With `run`, `GroupConsumer.run` calls its
#: handler.
WAYS = ("loop", "run")

#: The exit code of a program whose producer cannot continue.
NEEDS_PRODUCER = 3

POLL_MS = 200
MOST_RECORDS = 400
_SLOW_HANDLERS = 0.002  # the share of calls of the handler that sleep


async def transform_by_run(options: argparse.Namespace) -> None:
    """Runs `GroupConsumer.run` until the task is cancelled. Raises FatalTransactionError."""
    chance = random.Random(options.transactional_id)

    async def handle(record: kproto.Record, transaction: kproto.HandlerTransaction) -> None:
        await transaction.send(options.output, record.value, partition=record.partition)
        if chance.random() < _SLOW_HANDLERS:
            await asyncio.sleep(chance.random() * options.longest_pause_s)
        if chance.random() < options.aborts:
            raise _ChosenAbortError

    async with (
        kproto.Client(options.bootstrap) as client,
        client.consumer(
            options.input,
            group=options.group,
            start="earliest",
            read_committed=True,
            group_protocol=options.protocol,
        ) as consumer,
    ):
        await consumer.run(
            handle,
            transactional_id=options.transactional_id,
            transaction_timeout_ms=options.transaction_timeout_ms,
            retries=kproto.Retries(1_000_000, backoff_ms=1, backoff_max_ms=10),
        )


async def transform(options: argparse.Namespace) -> None:
    """Copies records in a loop until the task is cancelled. Raises FatalTransactionError."""
    chance = random.Random(options.transactional_id)
    async with (
        kproto.Client(options.bootstrap) as client,
        client.consumer(
            options.input,
            group=options.group,
            start="earliest",
            read_committed=True,
            group_protocol=options.protocol,
        ) as consumer,
        client.producer(
            transactional_id=options.transactional_id,
            transaction_timeout_ms=options.transaction_timeout_ms,
        ) as producer,
    ):
        while True:
            lists = await consumer.poll(POLL_MS, MOST_RECORDS)
            if not lists:
                continue
            try:
                async with producer.transaction() as transaction:
                    for records in lists.values():
                        for record in records:
                            await producer.enqueue(
                                options.output, record.value, partition=record.partition
                            )
                    await asyncio.sleep(chance.random() * options.longest_pause_s)
                    await transaction.commit_offsets(consumer)
                    if chance.random() < options.aborts:
                        raise _ChosenAbortError
            except (kproto.TransactionAbortedError, _ChosenAbortError) as error:
                print(f"aborted: {error}", file=sys.stderr, flush=True)
                await consumer.seek_to_committed()


class _ChosenAbortError(Exception):
    """Raised at random to abort a transaction."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the program until SIGTERM; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_until_terminated(options))
    except kproto.FatalTransactionError as error:
        print(f"a new producer is needed: {error}", file=sys.stderr)
        return NEEDS_PRODUCER
    return 0


async def _until_terminated(options: argparse.Namespace) -> None:
    program = transform_by_run if options.way == "run" else transform
    running = asyncio.ensure_future(program(options))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kill_test.transform")
    parser.add_argument("bootstrap")
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--protocol", default="auto", choices=["auto", "classic", "consumer"])
    parser.add_argument("--way", default="loop", choices=WAYS)
    parser.add_argument("--transactional-id", required=True)
    parser.add_argument("--transaction-timeout-ms", type=int, default=10_000)
    parser.add_argument("--longest-pause-s", type=float, default=0.1)
    parser.add_argument("--aborts", type=float, default=0.02, help="share of transactions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
