"""Files and folders through Hadoop's API: a local file system, HDFS or an object store.

Owns how a folder comes into a place, and what each file system promises of that. Knows nothing of
what is in it. Paths are text, as Spark takes them.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .errors import OutputBusyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OutputFiles"]

#: The file systems that move a folder in one step, by the scheme of their addresses. Any other is
#: taken for an object store, where each object is copied.
ATOMIC: Final = frozenset({"file", "hdfs", "viewfs", "abfs", "abfss"})


class OutputFiles:
    """One folder, and what stands in it and beside it."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        context = spark.sparkContext
        assert context._jvm is not None, "the session is stopped"
        self._java = context._jvm
        self._gateway: Any = context._gateway
        self._hadoop: Any = context._jvm.org.apache.hadoop.fs
        self._configuration = context._jsc.hadoopConfiguration()
        self._output = self._hadoop.Path(output)
        self._system = self._output.getFileSystem(self._configuration)
        self._output = self._system.makeQualified(self._output)
        self.root = str(self._output)
        self.scheme = str(self._system.getUri().getScheme())

    @property
    def atomic(self) -> bool:
        """Whether a folder is moved in one step, so that no reader sees a part of it."""
        return self.scheme in ATOMIC

    @property
    def local(self) -> Path | None:
        """The folder on this machine; None where it is elsewhere."""
        return Path(self._output.toUri().getPath()) if self.scheme == "file" else None

    def exists(self, path: str) -> bool:
        """Whether anything stands at the path."""
        return bool(self._system.exists(self._hadoop.Path(path)))

    def names(self, path: str) -> list[str]:
        """What stands in a folder, in order; nothing if it is not there."""
        if not self.exists(path):
            return []
        entries = self._system.listStatus(self._hadoop.Path(path))
        return sorted(str(entry.getPath().getName()) for entry in entries)

    def holds_data(self, path: str) -> bool:
        """True when the directory has an entry besides Spark's own marks."""
        return any(not name.startswith(("_", ".")) for name in self.names(path))

    def below(self, *names: str) -> str:
        """A path in the output."""
        return "/".join((self.root, *names))

    def beside(self, purpose: str) -> str:
        """A fresh path beside the output, hidden from readers of the folder around it."""
        return f"{self._parent()}/{self._aside(purpose)}{uuid.uuid4().hex}"

    def left_beside(self, purpose: str) -> list[str]:
        """What earlier runs have left at such paths."""
        parent, prefix = self._parent(), self._aside(purpose)
        return [f"{parent}/{name}" for name in self.names(parent) if name.startswith(prefix)]

    def make(self, path: str) -> None:
        """A folder, and those above it; one that is there is no error."""
        self._system.mkdirs(self._hadoop.Path(path))

    def delete(self, path: str) -> None:
        """Remove a directory and all below it; one that is not there is no error."""
        self._system.delete(self._hadoop.Path(path), True)

    def read(self, path: str) -> str:
        """The text of a file. Raises OSError."""
        if self.local is not None:
            return Path(self._path(path)).read_text(encoding="utf-8")
        stream = self._system.open(self._hadoop.Path(path))
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """A new file. It is there as a whole where the file system is an object store."""
        if self.local is not None:
            with Path(self._path(path)).open("x", encoding="utf-8") as file:
                file.write(text)
            return
        stream = self._system.create(self._hadoop.Path(path), False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def move(self, source: str, target: str) -> None:
        """Move a folder to a place where nothing is.

        Raises:
            OutputBusyError: something is there.
            OSError: the file system does not move it.
        """
        taken = OutputBusyError(
            f"{target} came into being while this run was at work: another run writes to the same "
            "output; end one of them, and start this one again"
        )
        if self.exists(target):
            raise taken
        if self.local is not None:
            # Hadoop would put the folder into one that is there; this refuses it.
            try:
                os.rename(self._path(source), self._path(target))  # noqa: PTH104
            except OSError as error:
                raise (taken if self.exists(target) else error) from None
            return
        if self.atomic:
            self._move_once(source, target, taken)
        elif not self._system.rename(self._hadoop.Path(source), self._hadoop.Path(target)):
            raise OSError(f"{source} could not be moved to {target}")

    def _move_once(self, source: str, target: str, taken: OutputBusyError) -> None:
        """By the call that refuses a target that is there, even if it has just come."""
        from py4j.protocol import Py4JJavaError

        files = self._hadoop.FileContext.getFileContext(self._system.getUri(), self._configuration)
        never_over = self._gateway.new_array(getattr(self._hadoop, "Options$Rename"), 0)
        try:
            files.rename(self._hadoop.Path(source), self._hadoop.Path(target), never_over)
        except Py4JJavaError as error:
            if "FileAlreadyExists" in str(error.java_exception):
                raise taken from None
            raise

    def replace(self, aside: str) -> None:
        """Move a finished directory to the output's place; what stood there goes last."""
        old = None
        if self.exists(self.root):
            old = self.beside("replaced")
            self.move(self.root, old)
        self.move(aside, self.root)
        if old is not None:
            self.delete(old)

    def restore(self) -> None:
        """Where a run was killed within `replace`: what stood in the place stands again."""
        if self.exists(self.root):
            return
        left = self.left_beside("replaced")
        if left:
            self.move(left[-1], self.root)

    def _parent(self) -> str:
        return str(self._output.getParent())

    def _aside(self, purpose: str) -> str:
        return f".{self._output.getName()}-{purpose}-"

    def _path(self, path: str) -> str:
        return str(self._hadoop.Path(path).toUri().getPath())
