"""Tests the code that the client benchmark's tasks share: start-up time, and record counts."""

from __future__ import annotations

import pytest

from kproto.broker import Broker
from tests.support.selection import rest_slow
from tools.bench.clients.kproto import WORKS
from tools.bench.clients.rows import ROWS, Row
from tools.bench.clients.task import (
    CHUNK,
    ReadMeter,
    SkippedError,
    Task,
    chunks,
    header_sets,
    records_of_chunk,
    warm_records,
)
from tools.bench.clients.topics import fill_topic, make_topic

#: More records than one fetch returns.
FEW_RECORDS = 20_000


def test_a_reading_ends_after_all_records_and_excludes_start_up() -> None:
    reading = ReadMeter(1000)
    done = [reading.is_done(came) for came in (0, 30, 30, 500, 439, 1)]
    assert done == [False] * 5 + [True]
    assert reading.measured.seconds > 0


def test_start_up_that_reads_every_record_is_an_error() -> None:
    assert not ReadMeter(1000).is_done(999)
    with pytest.raises(RuntimeError, match="all 1000 records"):
        ReadMeter(1000).is_done(1000)


@pytest.mark.parametrize("records", [1, CHUNK - 1, CHUNK, CHUNK + 1, 10 * CHUNK])
def test_chunks_have_all_records(records: int) -> None:
    assert sum(chunks(records)) == records
    assert all(0 < size <= CHUNK for size in chunks(records))


@pytest.mark.slow
def test_records_have_the_keys_and_headers_of_the_task() -> None:
    task = Task("kproto", "produce", "", "", 1)
    assert set(map(str, records_of_chunk(task))) == {"(None, None)"}
    made = records_of_chunk(task._replace(keyed=True, headers=True))
    assert len({key for key, _ in made}) == CHUNK
    assert all(len(headers or ()) == 6 for _, headers in made)
    assert len({str(headers) for headers in header_sets()}) == len(header_sets())


@pytest.mark.parametrize("row", rest_slow(ROWS, 0, 6), ids=lambda row: row.name)
@pytest.mark.slow
async def test_every_row_of_kproto_runs(row: Row) -> None:
    """Runs kproto's task of a table row on a broker; the task itself checks for lost records."""
    records = FEW_RECORDS if row.records is None else min(row.records, 20)
    async with Broker() as broker:
        await make_topic(broker.bootstrap, "t", row.partitions)
        if row.reads or row.few:
            await fill_topic(broker.bootstrap, "t", FEW_RECORDS, headers=row.headers)
        task = Task(
            "kproto", row.works["kproto"], broker.bootstrap, "t", records, row.keyed, row.headers
        )
        try:
            measured = await WORKS[task.work](task)
        except SkippedError as why:
            assert "Consumer has no" in str(why)  # noqa: PT017 - other rows are measured below
            return
    assert measured.seconds > 0
    assert measured.cpu > 0


def test_a_twentieth_is_start_up() -> None:
    assert warm_records(1_000_000) == 50_000
