"""Sets environment variables of child processes: Java, and the packages of this checkout."""

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

#: Spark sessions of tests are too short for Java's optimizing compiler to pay off.
SPARK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark_environment() -> None:
    """Sets the variables by which Spark finds Java, Python and this checkout's packages.

    Every test marked `spark` uses this fixture before any other fixture of the session.
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
        "SPARK_LOCAL_IP": "127.0.0.1",  # avoids looking up a host name
    }
