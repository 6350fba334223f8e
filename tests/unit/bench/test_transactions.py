"""Tests the benchmark of transactions: kproto's row on a broker, and the table's cells."""

from __future__ import annotations

import pytest

from kproto.broker import Broker
from tools.bench.clients.results import Results
from tools.bench.clients.task import TimePerRecord
from tools.bench.transactions.__main__ import Row, fault_of, fill_source, p50_of, rate_of
from tools.bench.transactions.overhead import measure_overhead
from tools.bench.transactions.task import Task
from tools.bench.transactions.with_kproto import WORKS

ROW = Row("100 records", "produce", 100, 200, 20)


@pytest.mark.parametrize(("work", "size"), [("produce", 1), ("produce", 100), ("transform", 100)])
async def test_kproto_commits_the_records_and_offsets_of_the_task(work: str, size: int) -> None:
    async with Broker() as broker:
        await fill_source(broker.bootstrap, "source", 1_000)
        broker.create_topic("t", 1)
        task = Task("kproto", work, broker.bootstrap, "t", "source", size, 3, 1, 0)
        measured = await WORKS[work](task)
        assert min(measured) > 0
        assert await fault_of(task) == ""
        assert "records are committed" in await fault_of(task._replace(transactions=4))


async def test_overhead_measures_both_producers() -> None:
    async with Broker() as broker:
        broker.create_topic("t", 1)
        assert min(await measure_overhead(broker.bootstrap, "t", 10, 2)) > 0


def test_a_cell_has_the_ratio_and_its_range() -> None:
    results = Results()
    for ours, theirs in ((1, 2), (1, 3), (2, 2)):
        results.add(ROW.name, "kproto", TimePerRecord(ours / 1e3, 2e-6))
        results.add(ROW.name, "aiokafka", TimePerRecord(theirs / 1e3, 4e-6))
        results.end_turn(ROW.name)
    assert rate_of(ROW, "kproto", results) == "1,000, 2.0 µs"
    assert rate_of(ROW, "aiokafka", results) == "500, 4.0 µs (2.00, 1.00–3.00)"
    assert p50_of(ROW, "aiokafka", results) == "2.0 ms, 0.00 ms (0.50, 0.33–1.00)"
    assert rate_of(ROW, "kafka_python", results) == "not measured"
