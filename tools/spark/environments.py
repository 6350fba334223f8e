"""Installs releases of PySpark in separate environments, and fetches the JVM connector.

The connector is the newest release whose jars are available. The environment of the connector has
the PySpark release for which the connector was built. kproto is not installed in the environments:
`environment` puts this checkout on their import path.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from tools.setup.environments import python_with
from tools.setup.java import java_home
from tools.setup.maven import fetch_each
from tools.setup.once import locked

__all__ = [
    "CONNECTOR_PYSPARK",
    "NEWEST_PYSPARK",
    "OLDEST_PYSPARK",
    "connector_jars",
    "environment",
    "python_with_connector",
    "python_with_pyspark",
]

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "spark"

#: The oldest and the newest release that the extra `kproto[spark]` accepts.
OLDEST_PYSPARK: Final = "4.0.5"
NEWEST_PYSPARK: Final = "4.3.0"

#: The PySpark release for which the connector's jars were built.
CONNECTOR_PYSPARK: Final = "4.2.0"
CONNECTOR: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
)
#: The packages that the data source needs, and optional ones that it uses if installed.
BESIDE: Final = ("cramjam", "google-crc32c", "numpy", "pandas", "pyarrow", "zlib-ng", "zstandard")

#: The packages of PySpark's extra `connect`, except pandas, because the extra would install the
#: newest pandas.
FOR_CONNECT: Final = ("grpcio", "grpcio-status", "googleapis-common-protos")


def python_with_pyspark(version: str, *, base: str = sys.executable, connect: bool = False) -> Path:
    """Returns the interpreter of an environment with this PySpark and the needed packages.

    `base` is the Python of the environment. With `connect`, the environment has the packages for
    clients of Spark Connect, too. Raises InstallError.
    """
    wanted = [f"pyspark=={version}", *_pinned(), *(FOR_CONNECT if connect else ())]
    name = f"pyspark-{version}"
    if base != sys.executable:
        name += f"-{Path(base).name}"
    if connect:
        name += "-connect"
    return python_with(CACHE / name, install=wanted, wanted=" ".join(wanted), base=base)


def python_with_connector() -> Path:
    """Returns the interpreter of the environment for the connector. Raises InstallError."""
    return python_with_pyspark(CONNECTOR_PYSPARK)


def connector_jars() -> str:
    """Returns the paths of the connector's jars as a value of `spark.jars`. Raises MavenError."""
    folder = CACHE / "connector-jars"
    with locked(folder.with_name("connector-jars.lock")):
        jars = fetch_each(folder, CONNECTOR, otherwise=f"put the jars into {folder}")
    return ",".join(map(str, jars))


def environment(python: Path | str) -> dict[str, str]:
    """Returns environment variables with which an interpreter finds Java, PySpark and kproto."""
    folders = [ROOT, ROOT / "codegen", ROOT / "cloudevents", ROOT / "pipeline"]
    variables = os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",  # otherwise Spark resolves the host name, which may fail
    }
    variables.pop("SPARK_HOME", None)
    return variables


def _pinned() -> list[str]:
    """Returns requirements for the packages in `BESIDE`, with the versions of dev.txt."""
    pins = {}
    for line in (ROOT / "requirements" / "dev.txt").read_text().splitlines():
        name, separator, version = line.partition("==")
        if separator and not line.startswith((" ", "#")):
            pins[name.strip()] = version.partition(";")[0].strip()
    return [f"{name}=={pins[name]}" for name in BESIDE]
