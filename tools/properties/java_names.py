"""Reads the property names of Kafka's Java clients from the jars of a release.

Runs the program in `java/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.releases.jars import CACHE, clients_jars
from tools.setup.java_program import run_java_program

__all__ = ["names_of_java"]

SOURCES = Path(__file__).with_name("java")
LIBRARIES = ("org.slf4j:slf4j-api:1.7.36",)
"""Libraries that the clients' classes need to load."""

RUN_TIMEOUT_S = 120.0
"""In seconds. The program takes one; a busy machine may need more."""


def names_of_java(releases: Sequence[str]) -> set[str]:
    """Returns the property names of the producer, consumer and admin clients of `releases`.

    Raises JavaNotFoundError, CompilerError, MavenError or ProgramError.
    """
    said = run_java_program(
        "ConfigNames",
        [str(jar) for jar in clients_jars(releases)],
        sources=SOURCES,
        libraries=LIBRARIES,
        cache=CACHE,
        timeout_s=RUN_TIMEOUT_S,
    )
    # Lines with a tab are the program's output; others are log lines.
    return {line.partition("\t")[2] for line in said.splitlines() if "\t" in line}
