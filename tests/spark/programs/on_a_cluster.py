"""Runs batch, stream and sink on a cluster, as a user's program without this checkout.

Run it as `spark-submit on_a_cluster.py TASK`, or for Spark Connect as `python on_a_cluster.py
TASK`. TASK is JSON. It has `topic`, `steps`, the `options` of every source and sink, and `folder`,
for output and checkpoints. `register` is true if the program registers the data source. For Spark
Connect, TASK also has `remote`, the server, and `artifacts`, the files to send to the server first.
The last line of the output is the result, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MARK = "found on the cluster: "
MOST_STARTS = 5

# The error of a query whose planning process has not connected within 10 s, a constant of Spark.
PLANNER_TOO_SLOW = "Python worker failed to connect back"


def session(task: dict[str, Any]) -> Any:
    from pyspark.sql import SparkSession

    if "remote" not in task:
        return SparkSession.builder.appName("cluster").getOrCreate()
    spark = SparkSession.builder.remote(task["remote"]).getOrCreate()
    for artifact in task["artifacts"]:
        spark.addArtifact(artifact, pyfile=artifact.endswith(".zip"), file=artifact[-4:] == ".pem")
    return spark


def run_to_end(writer: Any, seconds: float | None = None) -> Any:
    """Starts a query, waits for its end for at most `seconds`, and returns the query.

    On a busy machine the query's planning process can be too slow to start. Such a query has read
    nothing, and is started again.
    """
    for left in reversed(range(MOST_STARTS)):
        query = writer.start()
        try:
            query.awaitTermination(*([] if seconds is None else [seconds]))
        except Exception as error:
            if not left or PLANNER_TOO_SLOW not in str(error):
                raise
        else:
            break
    return query


def registered(spark: Any, task: dict[str, Any]) -> None:
    """Calls `register` if the task asks for it; otherwise Spark discovers the data source."""
    if task.get("register"):
        from kproto_pipeline import register

        register(spark)


def batch(spark: Any, task: dict[str, Any]) -> Any:
    """Reads a topic in a batch.

    Returns the number of rows, the sum of their offsets, and the number of partitions with rows.
    """
    rows = spark.read.format("kproto").options(subscribe=task["topic"], **task["options"]).load()
    found = rows.selectExpr("count(*)", "sum(offset)", "count(distinct partition)")
    return list(found.collect()[0])


def stream(spark: Any, task: dict[str, Any]) -> Any:
    """Writes a topic to Parquet in a stream that stops at the end; returns the number of rows."""
    query = (
        spark.readStream.format("kproto")
        .options(subscribe=task["topic"], startingOffsets="earliest", **task["options"])
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{task['folder']}/stream-checkpoint")
        .trigger(availableNow=True)
        .start(f"{task['folder']}/stream")
    )
    query.awaitTermination()
    return spark.read.parquet(f"{task['folder']}/stream").count()


def sink(spark: Any, task: dict[str, Any]) -> Any:
    """Writes 100 rows to a topic; returns how many distinct rows the topic then has."""
    name = f"{task['topic']}-sink"
    options = {**task["options"], "topic": name}
    rows = spark.range(100).selectExpr("cast(id as string) as key", "cast(id as string) as value")
    rows.write.format("kproto").options(**options).mode("append").save()
    read = spark.read.format("kproto").options(subscribe=name, **task["options"]).load()
    return read.selectExpr("cast(value as string)").distinct().count()


def stream_sink(spark: Any, task: dict[str, Any]) -> Any:
    """Copies a topic to another topic in a stream; returns how many distinct rows arrived."""
    name = f"{task['topic']}-stream-sink"
    query = (
        spark.readStream.format("kproto")
        .options(subscribe=task["topic"], startingOffsets="earliest", **task["options"])
        .load()
        .select("key", "value")
        .writeStream.format("kproto")
        .options(topic=name, **task["options"])
        .option("checkpointLocation", f"{task['folder']}/stream-sink-checkpoint")
        .trigger(availableNow=True)
    )
    run_to_end(query)
    read = spark.read.format("kproto").options(subscribe=name, **task["options"]).load()
    return read.select("value").distinct().count()


STEPS = {"batch": batch, "stream": stream, "sink": sink, "stream_sink": stream_sink}


def main() -> None:
    task = json.loads(sys.argv[1])
    spark = session(task)
    registered(spark, task)
    found = {step: STEPS[step](spark, task) for step in task["steps"]}
    if "remote" not in task:
        import kproto

        found["from"] = kproto.__file__
    print(MARK + json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
