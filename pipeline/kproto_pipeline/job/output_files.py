"""Reads, writes and renames files on Spark's file systems: local, HDFS or an object store.

Uses Hadoop's API, except for the content and the renames of local files. Distinguishes file systems
that rename a folder atomically. Paths are strings in Spark's syntax.
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

#: The URI schemes of file systems that rename a folder atomically. Any other scheme is
#: treated as that of an object store, which copies each object.
ATOMIC: Final = frozenset({"file", "hdfs", "viewfs", "abfs", "abfss"})


class OutputFiles:
    """An output folder, its content, and the temporary folders next to it."""

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
        """Returns True if a rename of a folder is atomic: no reader sees a part of the folder."""
        return self.scheme in ATOMIC

    @property
    def local(self) -> Path | None:
        """Returns the output folder as a local path; None if it is on another file system."""
        return self.local_path(self.root)

    def local_path(self, path: str) -> Path | None:
        """Returns a path in the output folder as a local path; None on another file system."""
        return Path(self._hadoop.Path(path).toUri().getPath()) if self.scheme == "file" else None

    def exists(self, path: str) -> bool:
        """Returns True if the path exists."""
        return bool(self._system.exists(self._hadoop.Path(path)))

    def names(self, path: str) -> list[str]:
        """Returns the sorted names in a folder; empty if the folder does not exist."""
        if not self.exists(path):
            return []
        entries = self._system.listStatus(self._hadoop.Path(path))
        return sorted(str(entry.getPath().getName()) for entry in entries)

    def holds_data(self, path: str) -> bool:
        """Returns True if a folder has files or folders that readers do not skip."""
        return any(not name.startswith(("_", ".")) for name in self.names(path))

    def size(self, path: str) -> int:
        """Returns the number of bytes of the files in a folder."""
        return int(self._system.getContentSummary(self._hadoop.Path(path)).getLength())

    def child_path(self, *names: str) -> str:
        """Returns the path of a file or folder in the output folder."""
        return "/".join((self.root, *names))

    def new_sibling(self, purpose: str) -> str:
        """Returns a new path next to the output, hidden from readers of the parent folder."""
        return f"{self._parent()}/{self._sibling_prefix(purpose)}{uuid.uuid4().hex}"

    def leftover_siblings(self, purpose: str) -> list[str]:
        """Returns the paths of the temporary folders for `purpose` that killed runs left behind."""
        parent, prefix = self._parent(), self._sibling_prefix(purpose)
        return [f"{parent}/{name}" for name in self.names(parent) if name.startswith(prefix)]

    def make_folder(self, path: str) -> None:
        """Creates a folder and its parents, if they do not exist."""
        self._system.mkdirs(self._hadoop.Path(path))

    def delete(self, path: str) -> None:
        """Deletes a folder and its content, if it exists."""
        self._system.delete(self._hadoop.Path(path), True)

    def read(self, path: str) -> str:
        """Reads the text of a file. Raises OSError, or Py4JJavaError if the file is not local."""
        if self.local is not None:
            return Path(self._path(path)).read_text(encoding="utf-8")
        stream = self._system.open(self._hadoop.Path(path))
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Writes a new file; raises if the file exists. Object stores show only complete files."""
        if self.local is not None:
            with Path(self._path(path)).open("x", encoding="utf-8") as file:
                file.write(text)
            return
        stream = self._system.create(self._hadoop.Path(path), False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def write_whole(self, path: str, text: str) -> None:
        """Writes a new file that is complete as soon as it exists; raises if the file exists."""
        if not self.atomic:
            self.write(path, text)  # an object store shows only complete files
            return
        folder, _, name = path.rpartition("/")
        partial = f"{folder}/.{name}-{uuid.uuid4().hex}"
        self.make_folder(folder)
        self.write(partial, text)
        self.move(partial, path)

    def move(self, source: str, target: str) -> None:
        """Renames a folder; `target` must not exist.

        Raises:
            OutputBusyError: `target` exists.
            OSError, Py4JJavaError: the file system cannot rename the folder.
        """
        busy = OutputBusyError(
            f"{target} appeared during this run: another run writes to the same output; stop one "
            "of the two runs, and start this run again"
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
        """Renames `source` with Hadoop's call that never overwrites a target.

        Raises `busy` if the target exists, even if another process has just created it.
        """
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
        """Renames a finished folder to the output path, then deletes the previous output."""
        old = None
        if self.exists(self.root):
            old = self.new_sibling("replaced")
            self.move(self.root, old)
        self.move(staging, self.root)
        if old is not None:
            self.delete(old)

    def restore(self) -> None:
        """Restores the previous output if a run was killed in `replace` between its two renames."""
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
