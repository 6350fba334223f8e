"""The rows of the client table as data, with the work that each client runs for a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

#: The clients in the order of the first turn; the second turn reverses it.
CLIENTS: Final = ("kproto", "confluent_kafka", "aiokafka", "kafka_python")

#: Slow clients, each with a divisor: the bench divides the requested number of records by it.
SHARES: Final = {"aiokafka": 2, "kafka_python": 10}

#: The number of records in the topic of the start-up rows.
FEW: Final = 10

SENDS: Final = 2_000
SENDS_BESIDE: Final = 200  # and as many by each of the other senders
CONCURRENT: Final = 10_000

#: The number of measurements of each client per turn, for rows that show a time. Times differ much
#: from process to process, because the operating system distributes threads differently.
TIMES: Final = 7


class MeasurementUnit(Enum):
    """The unit that a row shows: a rate (higher is better) or a time (lower is better)."""

    RATE = "thousand/s"
    MICROSECONDS = "µs"
    MILLISECONDS = "ms"


class Row(NamedTuple):
    """One row of the client table.

    `works` maps each client to the name of the function to measure; a client without an equivalent
    is missing. `records` is the number of records; None means the number that the user requested.
    `times` is the number of measurements of each client per repetition (`--repeat`). With `keyed`,
    records have a key; with `headers`, records have six headers. With `reads`, the function reads a
    topic that all rows with equal `headers`, `few` and `partitions` share; otherwise the topic is
    new. With `few`, the topic has a few records.
    """

    name: str
    shown: MeasurementUnit
    works: Mapping[str, str]
    records: int | None = None
    times: int = 1
    keyed: bool = False
    headers: bool = False
    reads: bool = False
    few: bool = False
    partitions: int = 1


def _all(work: str, **others: str) -> dict[str, str]:
    return dict.fromkeys(CLIENTS, work) | others


def _of(**works: str) -> dict[str, str]:
    return works


ROWS: Final = (
    Row("send_many, plain values", MeasurementUnit.RATE, _all("produce")),
    Row("send_many, records with key", MeasurementUnit.RATE, _all("produce"), keyed=True),
    Row(
        "send_many, records with key and six headers",
        MeasurementUnit.RATE,
        _all("produce"),
        keyed=True,
        headers=True,
    ),
    Row(
        "send_many, plain values; confluent-kafka by produce_batch",
        MeasurementUnit.RATE,
        _of(kproto="produce", confluent_kafka="produce_batch"),
    ),
    Row(
        "send_many, records with key; confluent-kafka by produce_batch",
        MeasurementUnit.RATE,
        _of(kproto="produce", confluent_kafka="produce_batch"),
        keyed=True,
    ),
    Row(
        "consume by record_lists(), key and value",
        MeasurementUnit.RATE,
        _all("batches"),
        reads=True,
    ),
    Row("consume by record, key and value", MeasurementUnit.RATE, _all("by record"), reads=True),
    Row(
        "consume by record, key, value and six headers",
        MeasurementUnit.RATE,
        _all("by record, headers"),
        headers=True,
        reads=True,
    ),
    Row(
        "consume by values(), lists of values",
        MeasurementUnit.RATE,
        _of(kproto="values", confluent_kafka="values"),
        reads=True,
    ),
    Row(
        "consume by raw_batches(); confluent-kafka: values",
        MeasurementUnit.RATE,
        _of(kproto="raw", confluent_kafka="values"),
        reads=True,
    ),
    Row(
        "10,000 concurrent sends with key, 12 partitions",
        MeasurementUnit.RATE,
        _of(kproto="concurrent", confluent_kafka="concurrent", aiokafka="concurrent"),
        records=CONCURRENT,
        keyed=True,
        partitions=12,
    ),
    Row(
        "one acknowledged send at a time, p50",
        MeasurementUnit.MICROSECONDS,
        _all("send"),
        records=SENDS,
        times=TIMES,
    ),
    Row(
        "start to the first record consumed",
        MeasurementUnit.MILLISECONDS,
        _all("start, consume"),
        records=1,
        times=TIMES,
        few=True,
    ),
    Row(
        "start to the first record acknowledged",
        MeasurementUnit.MILLISECONDS,
        _all("start, produce"),
        records=1,
        times=TIMES,
        few=True,
    ),
)


#: The partition counts of the topics in the table of `tools.bench.partitions`.
PARTITIONS: Final = (1, 12, 100, 1_000, 9_000)


def _rows_of_partitions(partitions: int) -> tuple[Row, ...]:
    of = f"{partitions:,} partition{'s' if partitions > 1 else ''}"
    with_aiokafka = partitions < 9_000  # with so many, aiokafka takes minutes

    def works(work: str, *, with_aiokafka: bool = with_aiokafka) -> dict[str, str]:
        both = _of(kproto=work, confluent_kafka=work)
        return both | _of(aiokafka=work) if with_aiokafka else both

    return (
        Row(
            f"send_many, records with key, {of}",
            MeasurementUnit.RATE,
            works("produce"),
            keyed=True,
            partitions=partitions,
        ),
        Row(
            f"consume by record_lists(), {of}",
            MeasurementUnit.RATE,
            # With 100 partitions and more, aiokafka returns all records in one list.
            works("batches", with_aiokafka=partitions < 100),
            reads=True,
            partitions=partitions,
        ),
        Row(
            f"consume by record, {of}",
            MeasurementUnit.RATE,
            works("by record"),
            reads=True,
            partitions=partitions,
        ),
        Row(
            f"consume by values(), {of}",
            MeasurementUnit.RATE,
            _of(kproto="values", confluent_kafka="values"),
            reads=True,
            partitions=partitions,
        ),
    )


def _start_rows(partitions: int) -> tuple[Row, ...]:
    of = f"{partitions:,} partition{'s' if partitions > 1 else ''}"
    earliest = _of(kproto="start, consume", confluent_kafka="start at the earliest, consume")
    if partitions < 9_000:
        earliest |= _of(aiokafka="start, consume")
    return tuple(
        Row(
            name,
            MeasurementUnit.MILLISECONDS,
            works,
            records=1,
            times=TIMES,
            reads=True,
            few=True,
            partitions=partitions,
        )
        for name, works in (
            (f"start to the first record consumed, {of}", earliest),
            (
                f"start at offset 0 to the first record consumed, {of}",
                _of(kproto="start at offset 0, consume", confluent_kafka="start, consume"),
            ),
        )
    )


PARTITION_ROWS: Final = (
    *(row for partitions in PARTITIONS for row in _rows_of_partitions(partitions)),
    *(row for partitions in PARTITIONS for row in _start_rows(partitions)),
    *(
        row
        for partitions in (12, 1_000)
        for row in (
            Row(
                f"10,000 concurrent sends with key, {partitions:,} partitions",
                MeasurementUnit.RATE,
                _of(kproto="concurrent", confluent_kafka="concurrent", aiokafka="concurrent"),
                records=CONCURRENT,
                keyed=True,
                partitions=partitions,
            ),
            Row(
                f"10,000 coroutines that await a future each, after sends to {partitions:,} "
                "partitions",
                MeasurementUnit.RATE,
                _of(kproto="futures"),
                records=CONCURRENT,
                keyed=True,
                partitions=partitions,
            ),
        )
    ),
    Row(
        "one send beside 200 others, p50, 12 partitions",
        MeasurementUnit.MICROSECONDS,
        _of(kproto="send beside", confluent_kafka="send beside", aiokafka="send beside"),
        records=SENDS_BESIDE,
        times=TIMES,
        keyed=True,
        partitions=12,
    ),
)


def clients_of(row: Row, wanted: Sequence[str]) -> list[str]:
    """Returns the clients of `wanted` that can run the row."""
    return [client for client in wanted if client in row.works]


def records_of(row: Row, client: str, records: int) -> int:
    """Returns the number of records that the bench measures in a row for a client.

    `records` is the number that the user requested. For slow clients, the result is a share of that
    number.
    """
    if row.records is not None:
        return row.records
    return records // SHARES.get(client, 1)
