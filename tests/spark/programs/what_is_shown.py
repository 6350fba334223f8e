"""Reads and writes with secrets in the options, also with errors; returns all that Spark shows."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from typing import Any
from urllib.request import urlopen

from tests.spark.programs.on_a_cluster import run_to_end


def run(spark: Any, task: dict[str, Any]) -> dict[str, str]:
    """Returns the texts that Spark shows for the task's options: plans, errors and pages.

    Each text's key tells where Spark shows the text. Log files are not included.
    """
    from kproto_pipeline import register

    if task["register"]:
        register(spark)
    shown: dict[str, str] = {}
    options = task["options"]
    rows = spark.read.format("kproto").options(subscribe=task["topic"], **options).load()
    shown["repr"] = repr(rows) + repr(rows.schema)
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            rows.explain(mode=mode)
        shown[f"explain {mode}"] = said.getvalue()
    shown["rows"] = str(rows.count())
    for step in task["steps"]:
        try:
            shown |= STEPS[step](spark, task)
        except Exception:
            shown[f"error of {step}"] = traceback.format_exc()
    for name, changed in task["failing"].items():
        bad = options | changed
        try:
            spark.read.format("kproto").options(subscribe=task["topic"], **bad).load().count()
        except Exception:
            shown[f"failing {name}"] = traceback.format_exc()
    shown |= _pages(spark)
    return shown


def _stream(spark: Any, task: dict[str, Any]) -> dict[str, str]:
    query = _of_stream(spark, task).writeStream.format("noop")
    return _told(query, f"{task['folder']}/stream")


def _sink(spark: Any, task: dict[str, Any]) -> dict[str, str]:
    rows = spark.range(5).selectExpr("cast(id as string) as value")
    to = {**task["options"], "topic": task["topic"]}
    rows.write.format("kproto").options(**to).mode("append").save()
    return {}


def _stream_sink(spark: Any, task: dict[str, Any]) -> dict[str, str]:
    query = _of_stream(spark, task).select("value").writeStream.format("kproto")
    query = query.options(topic=f"{task['topic']}-copy", **task["options"])
    return _told(query, f"{task['folder']}/stream-sink")


def _of_stream(spark: Any, task: dict[str, Any]) -> Any:
    source = spark.readStream.format("kproto").option("startingOffsets", "earliest")
    return source.options(subscribe=task["topic"], **task["options"]).load()


def _told(writer: Any, checkpoint: str) -> dict[str, str]:
    query = run_to_end(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        query.explain(True)
    progress = json.dumps([dict(each) for each in query.recentProgress], default=str)
    return {f"{checkpoint} explain": said.getvalue(), f"{checkpoint} progress": progress}


def _view(spark: Any, task: dict[str, Any]) -> dict[str, str]:
    """Reads a temporary view; its statement has the options as text."""
    options = ", ".join(
        f"`{name}` '{value.translate(ESCAPES)}'"
        for name, value in {**task["options"], "subscribe": task["topic"]}.items()
    )
    spark.sql(f"CREATE TEMPORARY VIEW shown USING kproto OPTIONS ({options})")
    said = [spark.sql("EXPLAIN EXTENDED SELECT value FROM shown").collect()]
    said.append(spark.sql("DESCRIBE EXTENDED shown").collect())
    said.append(spark.sql("SELECT count(*) FROM shown").collect())
    return {"view": str(said)}


#: Escapes a value in an SQL literal.
ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'"})

STEPS = {"stream": _stream, "sink": _sink, "stream_sink": _stream_sink, "view": _view}


def _pages(spark: Any) -> dict[str, str]:
    """Returns the pages of Spark's UI, and the responses of its REST API."""
    root = spark.sparkContext.uiWebUrl
    application = f"api/v1/applications/{spark.sparkContext.applicationId}"
    paths = [
        "jobs/",
        "stages/",
        "storage/",
        "environment/",
        "executors/",
        "SQL/",
        "StreamingQuery/",
    ]
    paths += [f"{application}/{each}" for each in ("jobs", "stages", "environment", "executors")]
    paths.append(f"{application}/sql?details=true&planDescription=true&length=1000")
    found = {}
    for path in paths:
        found[f"page {path}"] = _page(f"{root}/{path}")
    executions = json.loads(found[f"page {paths[-1]}"])
    for each in executions:
        path = f"SQL/execution/?id={each['id']}"
        found[f"page {path}"] = _page(f"{root}/{path}")
    return found


def _page(address: str) -> str:
    with urlopen(address, timeout=30) as answer:
        text: str = answer.read().decode("utf-8", errors="replace")
        return text
