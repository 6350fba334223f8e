"""The place of a job's output, through Hadoop's API: a local file system, HDFS or an object store.

Owns how a finished directory comes into the place of an old one. Knows nothing of what is in it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OutputFiles"]


class OutputFiles:
    """One output, and what stands beside it. Paths are text, as Spark takes them."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        context = spark.sparkContext
        assert context._jvm is not None, "the session is stopped"
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._output = self._hadoop.Path(output)
        self._system = self._output.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self, path: str) -> bool:
        """Whether anything stands at the path."""
        return bool(self._system.exists(self._hadoop.Path(path)))

    def holds_data(self, path: str) -> bool:
        """True when the directory has an entry besides Spark's own marks."""
        entries = self._system.listStatus(self._hadoop.Path(path))
        return any(not entry.getPath().getName().startswith(("_", ".")) for entry in entries)

    def sibling(self, purpose: str) -> str:
        """A fresh path beside the output, hidden from readers of the folder."""
        name = f".{self._output.getName()}-{purpose}-{uuid.uuid4().hex}"
        return str(self._hadoop.Path(self._system.makeQualified(self._output).getParent(), name))

    def delete(self, path: str) -> None:
        """Remove a directory and all below it; one that is not there is no error."""
        self._system.delete(self._hadoop.Path(path), True)

    def replace(self, aside: str) -> None:
        """Move a finished directory to the output's place; what stood there goes last."""
        old = None
        if self._system.exists(self._output):
            old = self.sibling("replaced")
            self._rename(self._output, self._hadoop.Path(old))
        self._rename(self._hadoop.Path(aside), self._output)
        if old is not None:
            self.delete(old)

    def _rename(self, source: object, target: object) -> None:
        if not self._system.rename(source, target):
            raise OSError(f"{source} could not be moved to {target}")
