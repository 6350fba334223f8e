"""Reads, writes and renames files through Hadoop's API: local files, HDFS or an object store.

Knows which file systems rename a folder atomically, and nothing of the content. Paths are strings,
as Spark takes them.
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

#: The schemes of file systems that rename a folder atomically. Any other is treated as an object
#: store, which copies each object.
ATOMIC: Final = frozenset({"file", "hdfs", "viewfs", "abfs", "abfss"})


class OutputFiles:
    """An output folder, its content, and its siblings."""

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
        """Whether a folder is renamed atomically, so that no reader sees a part of it."""
        return self.scheme in ATOMIC

    @property
    def local(self) -> Path | None:
        """The path of a local folder; None on any other file system."""
        return Path(self._output.toUri().getPath()) if self.scheme == "file" else None

    def exists(self, path: str) -> bool:
        """Returns whether the path exists."""
        return bool(self._system.exists(self._hadoop.Path(path)))

    def names(self, path: str) -> list[str]:
        """Returns the names in a folder, sorted; none if it does not exist."""
        if not self.exists(path):
            return []
        entries = self._system.listStatus(self._hadoop.Path(path))
        return sorted(str(entry.getPath().getName()) for entry in entries)

    def holds_data(self, path: str) -> bool:
        """Returns whether a folder has files other than Spark's markers."""
        return any(not name.startswith(("_", ".")) for name in self.names(path))

    def child_path(self, *names: str) -> str:
        """Returns a path in the output folder."""
        return "/".join((self.root, *names))

    def new_sibling(self, purpose: str) -> str:
        """Returns a new path next to the output, hidden from readers of the parent folder."""
        return f"{self._parent()}/{self._sibling_prefix(purpose)}{uuid.uuid4().hex}"

    def leftover_siblings(self, purpose: str) -> list[str]:
        """Returns the paths of `new_sibling` that earlier runs left."""
        parent, prefix = self._parent(), self._sibling_prefix(purpose)
        return [f"{parent}/{name}" for name in self.names(parent) if name.startswith(prefix)]

    def make_folder(self, path: str) -> None:
        """Creates a folder and its parents, if they do not exist."""
        self._system.mkdirs(self._hadoop.Path(path))

    def delete(self, path: str) -> None:
        """Deletes a folder and its content, if it exists."""
        self._system.delete(self._hadoop.Path(path), True)

    def read(self, path: str) -> str:
        """Reads the text of a file. Raises OSError."""
        if self.local is not None:
            return Path(self._path(path)).read_text(encoding="utf-8")
        stream = self._system.open(self._hadoop.Path(path))
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Writes a new file. In an object store it appears as a whole."""
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
        """Renames a folder to a path that does not exist.

        Raises:
            OutputBusyError: the path exists.
            OSError: the file system does not rename the folder.
        """
        busy = OutputBusyError(
            f"{target} appeared during this run: another run writes to the same output; end one "
            "of them, and start this one again"
        )
        if self.exists(target):
            raise busy
        if self.local is not None:
            # Hadoop would move the folder into an existing one; `os.rename` raises.
            try:
                os.rename(self._path(source), self._path(target))  # noqa: PTH104
            except OSError as error:
                raise (busy if self.exists(target) else error) from None
            return
        if self.atomic:
            self._move_once(source, target, busy)
        elif not self._system.rename(self._hadoop.Path(source), self._hadoop.Path(target)):
            raise OSError(f"{source} could not be moved to {target}")

    def _move_once(self, source: str, target: str, busy: OutputBusyError) -> None:
        """Renames by the call that fails if the target exists, even if it has just appeared."""
        from py4j.protocol import Py4JJavaError

        files = self._hadoop.FileContext.getFileContext(self._system.getUri(), self._configuration)
        no_overwrite = self._gateway.new_array(getattr(self._hadoop, "Options$Rename"), 0)
        try:
            files.rename(self._hadoop.Path(source), self._hadoop.Path(target), no_overwrite)
        except Py4JJavaError as error:
            if "FileAlreadyExists" in str(error.java_exception):
                raise busy from None
            raise

    def replace(self, staging: str) -> None:
        """Renames a finished folder to the output path, and then deletes the previous output."""
        old = None
        if self.exists(self.root):
            old = self.new_sibling("replaced")
            self.move(self.root, old)
        self.move(staging, self.root)
        if old is not None:
            self.delete(old)

    def restore(self) -> None:
        """Restores the previous output after a run was killed in `replace`."""
        if self.exists(self.root):
            return
        left = self.leftover_siblings("replaced")
        if left:
            self.move(left[-1], self.root)

    def _parent(self) -> str:
        return str(self._output.getParent())

    def _sibling_prefix(self, purpose: str) -> str:
        return f".{self._output.getName()}-{purpose}-"

    def _path(self, path: str) -> str:
        return str(self._hadoop.Path(path).toUri().getPath())
