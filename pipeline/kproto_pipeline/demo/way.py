"""The whole way of the flights: published, through the job, into counts, a table and a chart.

Owns the order of the stages, and that what one has begun is ended however the way ends. Needs the
packages that `program` looks for before it imports this.
"""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..job import run_job
from .flight_tables import carrier_rows, flight_table, hour_rows
from .flights import Expected, flight_records, read_flights
from .interrupts import run_in_own_thread
from .local_spark import spark_session, spark_work, watched
from .progress import Stage
from .publishing import TOPIC_PARTITIONS, embedded_broker, publish, topic_removed
from .report import Check, all_checks, draw_delay_by_hour, print_report

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row

__all__ = ["go"]


def go(output: Path, limit: int | None) -> list[Check]:
    """Print as it goes, and return every count that was checked."""
    flights = read_flights(limit)
    expected = Expected(len(flights))
    with Stage("encode", expected.records) as encoding:
        records = []
        for record in flight_records(flights):
            records.append(record)
            encoding.advance_to(len(records))
    topic = f"kproto-demo-{uuid.uuid4().hex[:12]}"
    parquet = str(output.absolute() / "events")
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP") or closing.enter_context(embedded_broker())
        print(f"broker {bootstrap}, topic {topic}")
        closing.enter_context(topic_removed(bootstrap, topic))
        with Stage("publish", expected.records) as publishing:
            published = run_in_own_thread(publish(bootstrap, topic, records, publishing))
        spark = closing.enter_context(spark_session(TOPIC_PARTITIONS))
        with Stage("job", expected.records) as job, watched(spark, job):
            options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
            counts = spark_work(spark, lambda: run_job(spark, options, parquet, overwrite=True))

        def tables() -> tuple[list[Row], list[Row]]:
            events = flight_table(spark, parquet)
            return carrier_rows(events), hour_rows(events)

        carriers, by_hour = spark_work(spark, tables)
    checks = all_checks(expected, published, counts, carriers)
    print_report(checks, carriers, [encoding, publishing, job])
    chart = output / "delay-by-hour.png"
    draw_delay_by_hour(by_hour, chart)
    print(f"\nevents {parquet}\nchart  {chart.absolute()}")
    return checks
