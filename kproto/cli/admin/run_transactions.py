"""Runs `kproto transactions`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, Final

from ...client import Client, TopicPartition
from ...client.admin import (
    AbortTransactionSpec,
    AdminError,
    ProducerState,
    TransactionDescription,
)
from ...clock import SYSTEM_CLOCK
from ...wire.errors import BrokerResponseError, UnsupportedVersionError
from ..command_error import CommandError
from ..tables import named
from .confirming import confirm
from .known_names import known_names
from .rows import print_rows
from .run_topics import named_partition, named_partitions
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["run"]

#: The states of transactions, as of Java's TransactionState.
_KNOWN_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)

_PRODUCER_COLUMNS: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp_ms",
    "transaction_start_offset",
)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


async def _list(client: Client, options: argparse.Namespace) -> int:
    found = await client.admin.list_transactions(
        states=known_names("--state", options.states, _KNOWN_STATES),
        running_longer_than_ms=options.longer_than,
        transactional_id_pattern=options.pattern,
    )
    columns = ("transactional_id", "producer_id", "state", "coordinator")
    print_rows(options, columns, (each._asdict() for each in found))
    return 0


async def _describe(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    found = await partial.of(client.admin.describe_transactions(options.ids))
    rows = (
        {
            **each._asdict(),
            "partitions": [f"{topic}:{number}" for topic, number in each.partitions],
        }
        for each in found.values()
    )
    print_rows(options, TransactionDescription._fields, rows)
    partial.raise_error()
    return 0


def _producer_row(tp: TopicPartition, state: ProducerState) -> dict[str, Any]:
    return {"topic": tp[0], "partition": tp[1], **state._asdict()}


async def _producers(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    tps = await named_partitions(client, options.topics, partial)
    found = await partial.of(client.admin.describe_producers(tps))
    rows = (_producer_row(tp, state) for tp, states in found.items() for state in states)
    print_rows(options, _PRODUCER_COLUMNS, rows)
    partial.raise_error()
    return 0


async def _hanging(client: Client, options: argparse.Namespace) -> int:
    names = options.topics or await client.admin.list_topics()
    partial = PartialResults()
    tps = await named_partitions(client, names, partial) if names else []
    found = await partial.of(client.admin.describe_producers(tps)) if tps else {}
    known = await _open_partitions(client)
    before_ms = SYSTEM_CLOCK.now_ms() - options.longer_than
    rows = [
        _producer_row(tp, state)
        for tp, states in found.items()
        for state in states
        if is_hanging(tp, state, known, before_ms)
    ]
    print_rows(options, _PRODUCER_COLUMNS, rows)
    partial.raise_error()
    return 0


def is_hanging(
    tp: TopicPartition,
    state: ProducerState,
    known: dict[int, set[TopicPartition]],
    before_ms: int,
) -> bool:
    """Returns True if a producer has an open transaction in a partition that is hanging (KIP-664).

    Its last write is before `before_ms`, and no coordinator has the partition in a transaction of
    the producer; `known` has the partitions of the coordinators' transactions by producer id.
    """
    if state.transaction_start_offset is None or state.last_timestamp_ms >= before_ms:
        return False
    return tp not in known.get(state.producer_id, set())


async def _open_partitions(client: Client) -> dict[int, set[TopicPartition]]:
    """Returns the partitions of all transactions that coordinators have, by producer id."""
    listed = await client.admin.list_transactions()
    known: dict[int, set[TopicPartition]] = {}
    ids = [each.transactional_id for each in listed]
    described: Iterable[TransactionDescription]
    try:
        described = (await client.admin.describe_transactions(ids)).values() if ids else ()
    except AdminError as error:
        if not all(map(_is_expired, error.errors.values())):
            raise  # an id that was not described may have a transaction that is not hanging
        described = error.results.values()
    for each in described:
        known.setdefault(each.producer_id, set()).update(each.partitions)
    return known


def _is_expired(error: Exception) -> bool:
    return isinstance(error, BrokerResponseError) and error.name == "TRANSACTIONAL_ID_NOT_FOUND"


async def _abort(client: Client, options: argparse.Namespace) -> int:
    tp = await named_partition(client, options.partition)
    states = (await client.admin.describe_producers([tp]))[tp]
    state = next(
        (each for each in states if each.transaction_start_offset == options.start_offset), None
    )
    if state is None:
        raise CommandError(
            f"{options.partition} has no open transaction that starts at {options.start_offset}"
        )
    if tp in (await _open_partitions(client)).get(state.producer_id, set()):
        raise CommandError(
            f"a coordinator knows the transaction of producer {state.producer_id}, so it is not "
            "hanging: kproto transactions fence ID aborts it"
        )
    action = f"abort the transaction of producer {state.producer_id} in {options.partition}"
    if not confirm(options, action):
        return 1
    epoch = state.coordinator_epoch
    await client.admin.abort_transaction(
        AbortTransactionSpec(
            *tp, state.producer_id, state.producer_epoch, -1 if epoch is None else epoch
        )
    )
    return 0


async def _fence(client: Client, options: argparse.Namespace) -> int:
    if not options.create:
        await _check_known(client, options.ids)
    if not confirm(options, f"fence the producers of {', '.join(options.ids)}"):
        return 1
    found = await client.admin.fence_producers(options.ids)
    rows = ({"transactional_id": name, **each._asdict()} for name, each in found.items())
    print_rows(options, ("transactional_id", "producer_id", "epoch"), rows)
    return 0


async def _check_known(client: Client, ids: Iterable[str]) -> None:
    """Raises CommandError for transactional ids that no coordinator knows: fencing creates them.

    Brokers before Kafka 3.0 cannot tell.
    """
    try:
        await client.admin.describe_transactions(ids)
    except AdminError as error:
        left = {
            name: each
            for name, each in error.errors.items()
            if not isinstance(each, UnsupportedVersionError)
        }
        unknown = [
            name
            for name, each in left.items()
            if isinstance(each, BrokerResponseError) and each.name == "TRANSACTIONAL_ID_NOT_FOUND"
        ]
        if unknown:
            raise CommandError(
                f"no coordinator knows {named(unknown, 'transactional id')}: fencing would create "
                f"{'it' if len(unknown) == 1 else 'them'}; --create allows it"
            ) from None
        if left:
            raise


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "describe": _describe,
    "producers": _producers,
    "hanging": _hanging,
    "abort": _abort,
    "fence": _fence,
}
