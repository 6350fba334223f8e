"""Starts the Python processes of a local Spark without Spark's archives on their path.

Spark puts `pyspark.zip` first on the path of its Python processes. The archive has no compiled
modules, so each process that Spark starts compiles PySpark again: 0.6 to 0.9 s of CPU time. A
stream starts several processes, to create the source, to plan, to read and to write. If pip has
installed PySpark, the same modules are in a folder, with compiled files beside them.

Spark also puts `spark-core.jar` on the path. The jar has no Python modules, but Python reads its
directory of 5,900 names when a process starts, and a second time when PySpark calls
`importlib.invalidate_caches`: up to 20 ms each time.

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
    {home}/python/lib/*.zip | {home}/jars/*.jar) ;;
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
    home = Path(_find_spark_home())
    temporary = getattr(context, "_temp_dir", None)
    is_of_pip = home.resolve() == Path(pyspark.__file__).parent.resolve()
    if os.name != "posix" or temporary is None or not is_of_pip:
        return sys.executable
    script = Path(temporary) / _NAME
    try:
        script.write_text(script_for(sys.executable, home))
        script.chmod(0o700)
    except OSError:
        return sys.executable
    return str(script) if os.access(script, os.X_OK) else sys.executable


def script_for(python: str, home: Path) -> str:
    """Returns the script that starts `python` without the archives and jars of the Spark `home`."""
    return _SCRIPT.format(python=shlex.quote(python), home=shlex.quote(str(home)))
