"""Starts the Python processes of a local Spark without `pyspark.zip` on their path.

Spark puts `pyspark.zip` first on the path of its Python processes. The archive has no compiled
modules, so each process that Spark starts compiles PySpark again: 0.6 to 0.9 s of CPU time. A
stream starts several processes, to create the source, to plan, to read and to write. If pip has
installed PySpark, the same modules are in a folder, with compiled files beside them.

Spark starts any program as Python, so a shell script removes the archives from PYTHONPATH, and then
becomes the interpreter.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.find_spark_home import _find_spark_home

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["python_for_workers", "script_for"]

#: The name of the script, in the temporary folder that Spark removes with its context.
_NAME: Final = "kproto-python"

_SCRIPT: Final = """\
#!/bin/sh
rest=
IFS=:
set -f
for entry in $PYTHONPATH; do
  case $entry in
    {archives}/*.zip) ;;
    *) rest=$rest:$entry ;;
  esac
done
export PYTHONPATH="${{rest#:}}"
unset IFS
exec {python} "$@"
"""


def python_for_workers(context: SparkContext) -> str:
    """Returns the program that starts Python for the workers of a local Spark.

    Returns this process's interpreter itself unless pip has installed PySpark: only then does the
    folder have the version of the archives.
    """
    folder = Path(pyspark.__file__).parent
    temporary = getattr(context, "_temp_dir", None)
    if os.name != "posix" or temporary is None or Path(_find_spark_home()) != folder:
        return sys.executable
    script = Path(temporary) / _NAME
    try:
        script.write_text(script_for(sys.executable, folder / "python" / "lib"))
        script.chmod(0o700)
    except OSError:
        return sys.executable
    return str(script) if os.access(script, os.X_OK) else sys.executable


def script_for(python: str, archives: Path) -> str:
    """Returns the script that starts `python` without the archives in the folder `archives`."""
    return _SCRIPT.format(python=shlex.quote(python), archives=shlex.quote(str(archives)))
