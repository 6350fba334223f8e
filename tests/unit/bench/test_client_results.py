"""Tests the result tables of the client benchmark: medians, ratios, missing measurements."""

from __future__ import annotations

import pytest

from tools.bench.clients.results import Results, lines_of_tables
from tools.bench.clients.rows import CLIENTS, ROWS, MeasurementUnit, Row, clients_of, records_of
from tools.bench.clients.task import TimePerRecord

PRODUCE = Row("produce", MeasurementUnit.RATE, {"kproto": "produce", "confluent_kafka": "produce"})
SEND = Row("send", MeasurementUnit.MICROSECONDS, {"kproto": "send", "confluent_kafka": "send"})


def results_of(row: Row, *turns: dict[str, TimePerRecord]) -> Results:
    results = Results()
    for turn in turns:
        for client, measured in turn.items():
            results.add(row.name, client, measured)
        results.end_turn(row.name)
    return results


def test_a_ratio_is_the_median_of_the_ratios_within_a_round() -> None:
    """A ratio divides measurements of one round: in another round the machine may be slower."""
    results = results_of(
        PRODUCE,
        {"kproto": TimePerRecord(2, 2), "confluent_kafka": TimePerRecord(1, 4)},
        {"kproto": TimePerRecord(40, 40), "confluent_kafka": TimePerRecord(20, 80)},
        {"kproto": TimePerRecord(9, 9), "confluent_kafka": TimePerRecord(3, 9)},
    )
    assert results.ratio("produce", "confluent_kafka") == TimePerRecord(2, 0.5)
    assert results.middle("produce", "kproto") == TimePerRecord(9, 9)


def test_a_round_with_a_failure_has_no_ratio() -> None:
    results = results_of(
        PRODUCE,
        {"kproto": TimePerRecord(1, 1)},
        {"confluent_kafka": TimePerRecord(1, 1)},
        {"kproto": TimePerRecord(3, 3), "confluent_kafka": TimePerRecord(1, 1)},
    )
    assert results.ratio("produce", "confluent_kafka") == TimePerRecord(3, 3)
    assert results.ratio("produce", "aiokafka") is None


def test_rates_and_times_have_separate_tables() -> None:
    results = results_of(
        PRODUCE, {"kproto": TimePerRecord(8e-6, 6e-6), "confluent_kafka": TimePerRecord(4e-6, 3e-6)}
    )
    results.add("send", "kproto", TimePerRecord(600e-6, 300e-6))
    results.add("send", "confluent_kafka", TimePerRecord(300e-6, 100e-6))
    results.versions["confluent_kafka"] = "2.16.1"
    lines = lines_of_tables([SEND, PRODUCE], ["kproto", "confluent_kafka", "aiokafka"], results)
    assert lines[0].startswith("| thousand records/s")
    assert "| kproto | confluent-kafka 2.16.1 | aiokafka | CPU ÷ confluent-kafka's" in lines[0]
    assert lines[1] == "|---|---|---|---|---|"
    assert lines[2] == "| produce | 125.0, 6.00 µs | 250.0, 3.00 µs (0.50) |  | 2.00 |"
    assert lines[3] == ""
    assert lines[6] == "| send | 600.0 µs, 300.0 µs | 300.0 µs, 100.0 µs (2.00) |  | 3.00 |"


def test_the_ratio_of_cpu_time_has_its_range_over_rounds() -> None:
    results = results_of(
        PRODUCE,
        {"kproto": TimePerRecord(1, 3), "confluent_kafka": TimePerRecord(1, 2)},
        {"kproto": TimePerRecord(1, 5), "confluent_kafka": TimePerRecord(1, 4)},
    )
    lines = lines_of_tables([PRODUCE], ["kproto", "confluent_kafka"], results)
    assert lines[-1].endswith("| 1.38 (1.25–1.50) |")


def test_missing_measurements_are_marked() -> None:
    results = results_of(PRODUCE, {"confluent_kafka": TimePerRecord(4e-6, 3e-6)})
    lines = lines_of_tables([PRODUCE], ["kproto", "confluent_kafka"], results)
    assert lines[-1] == "| produce | not measured | 250.0, 3.00 µs |  |"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_kproto_and_a_peer_to_compare(row: Row) -> None:
    assert clients_of(row, CLIENTS)[:2] == ["kproto", "confluent_kafka"]
    assert all(records_of(row, client, 1_000_000) >= 1 for client in row.works)
