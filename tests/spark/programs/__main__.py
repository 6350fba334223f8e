"""Runs programs by name on one Spark session: `python -m tests.spark.programs CONFIG`.

Each line of the input is {"program": name, "task": …}. The result of a program is an output line:
`MARK` and then {"result": …} or {"error": text}. Spark may write other lines.
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


def _answer(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        program = import_module(f"tests.spark.programs.{request['program']}")
        return {"result": program.run(spark, request["task"])}
    except Exception:  # the test prints the traceback of any error
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    sys.exit(main())
