"""`python -m tests.spark.programs CONFIG`: Spark, and then programs by name, a line of JSON each.

A line of the input is {"program": name, "task": …}; a line of the output that begins with the mark
is {"result": …} or {"error": text}. Spark is started once for all.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from typing import Any

MARK = "result of a program: "


def main() -> int:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        for line in sys.stdin:
            print(f"{MARK}{json.dumps(_answer(spark, json.loads(line)))}", flush=True)
    finally:
        spark.stop()
    return 0


def _answer(spark: Any, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        program = import_module(f"tests.spark.programs.{asked['program']}")
        return {"result": program.run(spark, asked["task"])}
    except Exception:  # whatever it is, the test that asked shows it
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    sys.exit(main())
