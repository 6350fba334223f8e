"""The process of one engine: a Spark session that runs the action of each input line.

    python -m tools.bench.spark.worker TASK

TASK is JSON with `engine`, `cores`, `jars`, `bootstrap`, `topic`, `events`, `folder`, and `idle` if
kproto's engine uses the idle source (`tools.bench.spark.idle`). A line is JSON: the name of an
action, and its arguments.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from tools.bench.spark import job, reads, sink, streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Maps an action to its function, which takes the session, the task and the arguments.
ACTIONS: Final[Mapping[str, Callable[..., object]]] = {
    "read": reads.timed_read,
    "stream": streams.timed_stream,
    "micro batches": streams.micro_batches,
    "to topic": streams.to_topic,
    "rows to write": sink.hold_rows,
    "write": sink.timed_write,
    "copy": sink.copy,
    "job": job.timed_job,
}


def main() -> int:
    from pyspark.sql import SparkSession

    from tools.bench.spark.engines import ANSWER, OURS

    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.master(f"local[{task['cores']}]")
    for name, value in _conf(task).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if task["engine"] == OURS:
        from kproto_pipeline import register

        register(spark)
        if task.get("idle"):
            from tools.bench.spark.idle import IdleSource

            spark.dataSource.register(IdleSource)
    try:
        for line in sys.stdin:
            action, arguments = json.loads(line)
            answer = ACTIONS[action](spark, task, **arguments)
            print(f"{ANSWER}{json.dumps(answer)}", flush=True)
    finally:
        spark.stop()
    return 0


def _conf(task: Mapping[str, Any]) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(task["cores"]),
        "spark.sql.session.timeZone": "UTC",
        "spark.jars": str(task["jars"]),
        **task.get("conf", {}),
    }


if __name__ == "__main__":
    sys.exit(main())
