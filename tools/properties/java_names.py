"""Reads the property names of a release of Kafka's Java clients from its own jar.

Runs the program in `java/`. Knows nothing of librdkafka and of the meaning of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.releases.jars import CACHE, clients_jars
from tools.setup.java_program import run_java_program

__all__ = ["names_of_java"]

SOURCES = Path(__file__).with_name("java")
LIBRARIES = ("org.slf4j:slf4j-api:1.7.36",)
"""Libraries that the classes need when they are loaded."""

RUN_TIMEOUT_S = 120.0
"""It takes a second; a busy machine may need more."""


def names_of_java(releases: Sequence[str]) -> set[str]:
    """Returns the names that the producer, consumer or admin client of any of `releases` knows.

    Raises JavaNotFoundError, CompilerError, MavenError and ProgramError.
    """
    said = run_java_program(
        "ConfigNames",
        [str(jar) for jar in clients_jars(releases)],
        sources=SOURCES,
        libraries=LIBRARIES,
        cache=CACHE,
        timeout_s=RUN_TIMEOUT_S,
    )
    # Lines of logging have no tab.
    return {line.partition("\t")[2] for line in said.splitlines() if "\t" in line}
