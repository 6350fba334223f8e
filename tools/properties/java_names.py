"""The names of the properties that a release of Kafka's Java clients knows, from its own jar.

Runs the program in `java/`. Knows nothing of librdkafka and of what the names mean.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tools.releases.jars import CACHE, clients_jar
from tools.setup import java
from tools.setup.javac import compile_java
from tools.setup.maven import fetch_jar
from tools.setup.once import locked
from tools.setup.programs import run_program

__all__ = ["names_of_java"]

SOURCES = Path(__file__).with_name("java")
LIBRARIES = ("org.slf4j:slf4j-api:1.7.36",)
"""What the classes ask for when they are loaded."""

RUN_TIMEOUT_S = 120.0
"""It takes a second; a busy machine may need more."""


def names_of_java(releases: Sequence[str]) -> set[str]:
    """The names that the producer, the consumer or the admin client of any of `releases` knows.

    Raises JavaNotFoundError, CompilerError, MavenError and ProgramError.
    """
    jars = [clients_jar(release) for release in releases]
    home = java.java_home()
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    classes = CACHE / f"classes-{digest}"
    with locked(CACHE / "lock"):
        libraries = [
            fetch_jar(CACHE, library, otherwise=f"put its jar into {CACHE}")
            for library in LIBRARIES
        ]
        if not classes.is_dir():
            compile_java(home, sources, classes, cache=CACHE)
    path = os.pathsep.join(map(str, libraries))
    command = [str(home / "bin" / "java"), "-classpath", str(classes), "ConfigNames", path]
    said = run_program([*command, *map(str, jars)], timeout_s=RUN_TIMEOUT_S)
    # What logging says of itself has no tab.
    return {line.partition("\t")[2] for line in said.splitlines() if "\t" in line}
