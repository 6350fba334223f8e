"""What child processes of the tests need: a Java, and the packages of the source tree."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools.setup.java import JavaNotFoundError, java_home

from .availability import not_available

__all__ = ["ROOT", "spark_environment"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = (ROOT, ROOT / "codegen", ROOT / "cloudevents", ROOT / "pipeline")

#: Sparks of tests live for seconds: what Java compiles a second time would not be paid back.
SPARK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark_environment() -> None:
    """Let Spark's JVM and its Python workers find Java, this interpreter and the packages.

    Every test marked `spark` gets it, before any other fixture of the session.
    """
    try:
        home = java_home()
    except JavaNotFoundError as error:
        not_available("Spark", error)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*map(str, SOURCE_FOLDERS), *filter(None, inherited)]
    os.environ |= {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", SPARK_JVM),
        "SPARK_LOCAL_IP": "127.0.0.1",  # no look-up of a host name that may not resolve
    }
