"""Tests that errors of Spark, Java and file systems become one line with their own words."""

from __future__ import annotations

import pickle

import pytest
from kproto_pipeline.job.errors import OutputBusyError, SparkError
from kproto_pipeline.job.java_output import startup_failure
from kproto_pipeline.job.spark_errors import describe_error, one_line, spark_errors
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.errors.exceptions.captured import AnalysisException

TASK = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task
 0.0 in stage 1.0 (TID 1) (127.0.0.1 executor driver): org.apache.spark.SparkException: Task failed
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.failed(QueryExecutionErrors.scala:776)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 3461, in main
    process()
    ~~~~~~~^^
kproto_pipeline.spark.planning.offset_ranges.DataLossError: flights-0: offset 5 is gone

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:640)
\t... 1 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndStages(DAGScheduler.scala:2935)
"""

PLAN = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. SQLSTATE: 42703;
'Project ['x]
+- SubqueryAlias t
   +- Relation [id#0L] parquet

JVM stacktrace:
org.apache.spark.sql.AnalysisException
\tat org.apache.spark.sql.Dataset.<init>(Dataset.scala:1)
"""

SUBMIT = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/29 00:16:16 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Exception in thread "main" org.apache.spark.SparkException: Master must start with spark or local
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""


class Throwable:
    """A Java exception, as py4j shows it."""

    def __init__(self, kind: str, message: str | None, cause: Throwable | None = None) -> None:
        self._kind, self._message, self._cause = kind, message, cause

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Throwable | None:
        return self._cause

    def toString(self) -> str:
        return self._kind if self._message is None else f"{self._kind}: {self._message}"


class Ended:
    """A Java exception whose Java process has ended."""

    def getMessage(self) -> str:
        raise ConnectionRefusedError("Connection refused")


def captured(origin: object, description: str = "") -> AnalysisException:
    """Returns an error of PySpark without a Java process, in which `__str__` raises."""
    error = AnalysisException.__new__(AnalysisException)
    error._origin, error._desc = origin, description
    error._stackTrace = "\tat a frame"
    return error


def test_line_has_the_words_of_the_first_and_the_last_exception() -> None:
    line = one_line(TASK)
    assert line.startswith("Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times")
    assert line.endswith(
        "SparkException: Task failed; caused by: org.apache.spark.api.python.PythonException: "
        "kproto_pipeline.spark.planning.offset_ranges.DataLossError: flights-0: offset 5 is gone"
    )


def test_line_has_no_query_plan_and_no_stack_trace() -> None:
    assert one_line(PLAN) == (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. "
        "SQLSTATE: 42703;"
    )


def test_long_line_is_cut() -> None:
    assert len(one_line("word " * 10_000)) < 2_100


def test_reason_of_java_is_the_reason_of_the_failed_start() -> None:
    assert startup_failure(SUBMIT.splitlines(keepends=True)) == (
        "org.apache.spark.SparkException: Master must start with spark or local"
    )


def test_causes_of_a_java_exception_are_read() -> None:
    inner = Throwable("java.net.UnknownHostException", "nowhere")
    error = captured(Throwable("x.SparkException", "[CONDITION] Failed.", inner))
    assert describe_error(error) == (
        "[CONDITION] Failed.; caused by: java.net.UnknownHostException: nowhere"
    )
    assert describe_error(captured(Throwable("java.lang.RuntimeException", None))) == (
        "java.lang.RuntimeException"
    )


def test_known_words_are_used_after_java_has_ended() -> None:
    assert describe_error(captured(Ended(), "[NAME] words\n\tat x.y(Z.java:1)")) == "[NAME] words"
    assert "Java process was lost" in describe_error(captured(Ended()))


@pytest.mark.parametrize(
    "error",
    [
        captured(Ended(), "words"),
        Py4JError("words"),
        Py4JNetworkError("words"),
        ConnectionRefusedError(111, "words"),
        PermissionError(13, "words", "/lake"),
        PySparkRuntimeError("words"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_spark_and_of_files_are_spark_errors(error: Exception) -> None:
    with pytest.raises(SparkError, match="words") as raised, spark_errors():
        raise error
    assert "\n" not in str(raised.value)
    assert type(error).__name__ in raised.value.details
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("error", [OutputBusyError("busy"), ValueError("a bug"), KeyboardInterrupt])
def test_other_errors_are_unchanged(error: type[BaseException] | BaseException) -> None:
    with (
        pytest.raises(BaseException) as raised,
        spark_errors(),
    ):
        raise error
    assert raised.value is error or raised.type is error


def test_failed_assertion_of_pyspark_is_a_spark_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark asserts that it has a gateway to Java; another test may have left one."""
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(SparkError, match="Java process was lost"), spark_errors():
        captured(Ended()).getCondition()
