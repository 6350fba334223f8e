"""Writes increments to a Delta or Iceberg table, each in one commit that names the increment.

Delta stores the name as the transaction of an application (`txnAppId`, `txnVersion`), Iceberg as
properties of the snapshot. After a kill the name tells whether the increment was committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from py4j.java_gateway import JavaPackage
from pyspark.sql import functions as sf

from .errors import OutputDamagedError, OutputExistsError, SettingError
from .event_status import VALID
from .lake_packages import folder_catalog, lake_package
from .output_files import OutputFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
    from pyspark.sql.types import StructType

    from .settings import JobSettings, OutputSettings

__all__ = ["Increment", "LakeTable", "open_lake_table"]

#: The application and the number that identify the commit of an increment.
Increment = tuple[str, int]

_APPLICATION: Final = "kproto.application"
_INCREMENT: Final = "kproto.increment"
#: The temporary view of the rows of an increment that are merged.
_VIEW: Final = "kproto_increment"


class LakeTable(Protocol):
    """A table whose commits name the increments that they have written."""

    def version(self) -> int | None:
        """Returns the version of the table; None if the table does not exist."""

    def read(self) -> DataFrame:
        """Returns the rows of the table."""

    def add_columns(self, schema: StructType) -> None:
        """Adds the columns that an existing table lacks, before the table is read."""

    def append(self, rows: DataFrame, increment: Increment) -> None:
        """Appends the rows of an increment in one commit; creates a missing table."""

    def merge(self, rows: DataFrame, increment: Increment) -> int | None:
        """Inserts the rows except the valid events that an existing table has; in one commit.

        Returns the number of inserted rows; None if the table was created, so that all rows were
        inserted.
        """

    def write_once(self, rows: DataFrame, *, overwrite: bool) -> None:
        """Writes the rows to a new table, or replaces the table if `overwrite` is True."""

    def committed_rows(self, increment: Increment, since: int | None) -> dict[str, int] | None:
        """Returns the number of rows of an increment by status; None if it was not committed.

        `since` is the version of the table before the increment was written.
        """


def open_lake_table(spark: SparkSession, settings: JobSettings) -> LakeTable | None:
    """Returns the table of an output; None if the format is neither Delta nor Iceberg.

    Raises:
        SettingError: the session lacks the jars of the format.
    """
    output = settings.output
    if not output.is_lake_table:
        return None
    java = _java(spark)
    is_delta = output.format.lower() == "delta"
    found: object = (
        java.org.apache.spark.sql.delta.DeltaLog
        if is_delta
        else java.org.apache.iceberg.spark.Spark3Util
    )
    if isinstance(found, JavaPackage):
        raise SettingError(_missing_jars(output.format, spark.version))
    return _DeltaTable(spark, output) if is_delta else _IcebergTable(spark, output)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


def _missing_jars(format_: str, pyspark: str) -> str:
    package = lake_package(format_, pyspark)
    if package is None:
        return (
            f"the format {format_} needs its jars in spark.jars or spark.jars.packages; no release "
            f"of {format_} is known to fit PySpark {pyspark}"
        )
    return (
        f"the format {format_} needs its jars: set spark.jars.packages to {package}, or spark.jars "
        "to the files"
    )


class _DeltaTable:
    def __init__(self, spark: SparkSession, output: OutputSettings) -> None:
        assert output.path is not None
        self._spark = spark
        self._output = output
        self._path = OutputFiles(spark, output.path).root
        self._java = _java(spark)
        self._activate_session()
        self._log = self._java.org.apache.spark.sql.delta.DeltaLog.forTable(
            spark._jsparkSession, self._path
        )

    def _activate_session(self) -> None:
        """Makes the session active in the thread of Java that this thread's calls use.

        Each thread of Python has its own thread of Java, which has no active session at first.
        Delta needs it to read some logs, such as those with an interrupted commit.
        """
        sessions = self._java.org.apache.spark.sql.classic.SparkSession
        sessions.setActiveSession(self._spark._jsparkSession)

    def version(self) -> int | None:
        version = int(self._snapshot().version())
        return None if version < 0 else version

    def read(self) -> DataFrame:
        return self._spark.read.format("delta").load(self._path)

    def add_columns(self, schema: StructType) -> None:
        """Does nothing: Delta adds columns in the commit of an increment, by `mergeSchema`."""

    def append(self, rows: DataFrame, increment: Increment) -> None:
        application, number = increment
        writer = rows.write.format("delta").mode("append").options(**self._output.options)
        writer = writer.option("txnAppId", application).option("txnVersion", str(number))
        writer = writer.option("userMetadata", _commit_name(increment))
        if self._output.merge_schema:
            writer = writer.option("mergeSchema", "true")
        if self._output.partition_by:
            writer = writer.partitionBy(*self._output.partition_by)
        writer.save(self._path)

    def merge(self, rows: DataFrame, increment: Increment) -> int | None:
        if self.version() is None:
            self.append(rows, increment)
            return None
        name = _commit_name(increment)
        properties = {
            "spark.databricks.delta.write.txnAppId": increment[0],
            "spark.databricks.delta.write.txnVersion": str(increment[1]),
            "spark.databricks.delta.commitInfo.userMetadata": name,
        }
        _merge(self._spark, f"delta.`{self._path}`", rows, properties)
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self._path}` LIMIT 1").first()
        if history is None or history["userMetadata"] != name:
            return 0
        return int(history["operationMetrics"].get("numTargetRowsInserted", 0))

    def write_once(self, rows: DataFrame, *, overwrite: bool) -> None:
        writer = rows.write.format("delta").options(**self._output.options)
        if self._output.partition_by:
            writer = writer.partitionBy(*self._output.partition_by)
        if overwrite:
            writer.mode("overwrite").option("overwriteSchema", "true").save(self._path)
        else:
            writer.mode("errorifexists").save(self._path)

    def committed_rows(self, increment: Increment, since: int | None) -> dict[str, int] | None:
        application, number = increment
        snapshot = self._snapshot()
        found = snapshot.transactions().get(application)
        if not found.isDefined() or int(found.get()) < number:
            return None
        most = int(snapshot.version()) - (-1 if since is None else since)
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self._path}` LIMIT {most}")
        named = history.where(sf.col("userMetadata") == _commit_name(increment))
        versions = [int(row["version"]) for row in named.select("version").collect()]
        if not versions:  # the history of this commit was removed
            return {}
        before = versions[0] - 1
        return _added_rows(self._at(versions[0]), self._at(before) if before >= 0 else None)

    def _at(self, version: int) -> DataFrame:
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        return reader.load(self._path)

    def _snapshot(self) -> Any:
        self._activate_session()
        nothing = self._java.scala.Option.empty
        return self._log.update(False, nothing(), nothing())


def _commit_name(increment: Increment) -> str:
    application, number = increment
    return f"kproto-pipeline {application} increment {number}"


class _IcebergTable:
    def __init__(self, spark: SparkSession, output: OutputSettings) -> None:
        assert output.path is not None
        self._spark = spark
        self._output = output
        self._java = _java(spark)
        self._name = output.path
        if "/" in output.path:
            folder, _, table = OutputFiles(spark, output.path).root.rpartition("/")
            catalog, properties = folder_catalog(folder)
            for name, value in properties.items():
                spark.conf.set(name, value)
            self._name = f"{catalog}.`{table}`"

    def version(self) -> int | None:
        if not self._spark.catalog.tableExists(self._name):
            return None
        snapshot = self._table().currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def read(self) -> DataFrame:
        return self._spark.table(self._name)

    def add_columns(self, schema: StructType) -> None:
        if not self._spark.catalog.tableExists(self._name):
            return
        there = self._spark.table(self._name).columns
        for field in schema:
            if field.name not in there:
                kind = field.dataType.simpleString()
                self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS (`{field.name}` {kind})")

    def append(self, rows: DataFrame, increment: Increment) -> None:
        if not self._spark.catalog.tableExists(self._name):
            self._new_table(self._writer(rows, increment)).create()
            return
        self._writer(self._with_table_columns(rows), increment).append()

    def merge(self, rows: DataFrame, increment: Increment) -> int | None:
        if not self._spark.catalog.tableExists(self._name):
            self.append(rows, increment)
            return None
        prefix = "spark.sql.iceberg.snapshot-property"
        properties = {
            f"{prefix}.{_APPLICATION}": increment[0],
            f"{prefix}.{_INCREMENT}": str(increment[1]),
        }
        _merge(self._spark, self._name, rows, properties)
        snapshot = self._table().currentSnapshot()
        summary = {} if snapshot is None else dict(snapshot.summary())
        if not _names(summary, increment):
            return 0
        return int(summary.get("added-records", 0))

    def write_once(self, rows: DataFrame, *, overwrite: bool) -> None:
        if overwrite:
            self._new_table(self._writer(rows)).createOrReplace()
        elif self._spark.catalog.tableExists(self._name):
            raise OutputExistsError(f"{self._name} exists; remove it, or set overwrite")
        else:
            self._new_table(self._writer(rows)).create()

    def committed_rows(self, increment: Increment, since: int | None) -> dict[str, int] | None:
        if not self._spark.catalog.tableExists(self._name):
            return None
        table = self._table()
        snapshot = table.currentSnapshot()
        while snapshot is not None and snapshot.snapshotId() != since:
            parent = snapshot.parentId()
            named = dict(snapshot.summary())
            if (named.get(_APPLICATION), named.get(_INCREMENT)) == (
                increment[0],
                str(increment[1]),
            ):
                return _added_rows(
                    self._at(snapshot.snapshotId()),
                    None if parent is None else self._at(parent),
                )
            snapshot = None if parent is None else table.snapshot(parent)
            if snapshot is None and parent not in (None, since):
                raise OutputDamagedError(
                    f"the snapshot {parent} of {self._name} has expired, so the job cannot tell "
                    f"whether increment {increment[1]} was committed: roll the table back to the "
                    f"snapshot {since}, or delete the increment's rows and its stored plan"
                )
        return None

    def _at(self, snapshot: int) -> DataFrame:
        return self._spark.read.option("versionAsOf", snapshot).table(self._name)

    def _table(self) -> Any:
        """Returns Iceberg's table, refreshed."""
        table = self._java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self._spark._jsparkSession, self._name
        )
        table.refresh()
        return table

    def _writer(self, rows: DataFrame, increment: Increment | None = None) -> DataFrameWriterV2:
        writer = rows.writeTo(self._name).options(**self._output.options)
        if increment is not None:
            writer = writer.option(f"snapshot-property.{_APPLICATION}", increment[0])
            writer = writer.option(f"snapshot-property.{_INCREMENT}", str(increment[1]))
        return writer

    def _new_table(self, writer: DataFrameWriterV2) -> DataFrameWriterV2:
        writer = writer.using("iceberg")
        columns = [sf.col(name) for name in self._output.partition_by]
        return writer.partitionedBy(*columns) if columns else writer

    def _with_table_columns(self, rows: DataFrame) -> DataFrame:
        """Adds the columns of the table that the rows lack."""
        there = self._spark.table(self._name).schema
        for field in there:
            if field.name not in rows.columns:
                rows = rows.withColumn(field.name, sf.lit(None).cast(field.dataType))
        return rows


def _names(summary: Mapping[str, str], increment: Increment) -> bool:
    """Returns True if the summary of a snapshot names the increment."""
    application, number = increment
    return (summary.get(_APPLICATION), summary.get(_INCREMENT)) == (application, str(number))


def _merge(spark: SparkSession, table: str, rows: DataFrame, properties: Mapping[str, str]) -> None:
    """Inserts rows except valid events that the table has; `properties` apply to the commit."""
    rows.createOrReplaceTempView(_VIEW)
    columns = [f"`{name}`" for name in rows.columns]
    for name, value in properties.items():
        spark.conf.set(name, value)
    try:
        same = "t.source = s.source AND t.id = s.id"
        valid = f"t.status = '{VALID}' AND s.status = '{VALID}'"
        names, values = ", ".join(columns), ", ".join(f"s.{name}" for name in columns)
        clauses = [
            f"MERGE INTO {table} AS t USING {_VIEW} AS s ON {same} AND {valid}",
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})",  # noqa: S608
        ]
        spark.sql(" ".join(clauses))
    finally:
        for name in properties:
            spark.conf.unset(name)
        spark.catalog.dropTempView(_VIEW)


def _added_rows(version: DataFrame, before: DataFrame | None) -> dict[str, int]:
    """Returns the number of rows by status in a version of a table, less those of another."""
    counts: dict[str, int] = {}
    for rows, sign in ((version, 1), (before, -1)):
        if rows is not None:
            for status, count in rows.groupBy("status").count().collect():
                counts[status] = counts.get(status, 0) + sign * count
    return counts
