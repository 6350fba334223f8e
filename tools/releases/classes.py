"""Reads the class ApiKeys of old clients jars, which have no message definitions.

Runs the program in `java/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kproto.schema.versions import NO_VERSIONS, Versions
from tools.setup.java_program import run_java_program

from .facts import ReleaseApi
from .jars import CACHE

__all__ = ["facts_of_classes"]

SOURCES = Path(__file__).with_name("java")
LIBRARIES = (
    "org.slf4j:slf4j-api:1.7.36",
    "com.fasterxml.jackson.core:jackson-core:2.13.4",
    "com.fasterxml.jackson.core:jackson-databind:2.13.4",
)
"""Libraries that ApiKeys needs to load: slf4j since 1.0, jackson in some of 2.x."""

RUN_TIMEOUT_S = 300.0
"""In seconds. The program takes two for thirty jars; a busy machine may need more."""

#: By release line: api keys that have a schema although no broker of the line implemented the API.
#: In 0.8.2 these are JoinGroup and Heartbeat, whose bytes differ from those of version 0 in 0.9.
PLACEHOLDERS = {"0.8.2": frozenset({11, 12})}


def facts_of_classes(jars: Sequence[Path]) -> dict[str, dict[int, ReleaseApi]]:
    """Returns the `ReleaseApi` of each API, by jar name and api key.

    Raises JavaNotFoundError, CompilerError, MavenError or ProgramError.
    """
    said = run_java_program(
        "Ranges",
        [str(jar) for jar in jars],
        sources=SOURCES,
        libraries=LIBRARIES,
        cache=CACHE,
        timeout_s=RUN_TIMEOUT_S,
    )
    found: dict[str, dict[int, ReleaseApi]] = {jar.name: {} for jar in jars}
    for line in said.splitlines():
        if line.count("\t") != 4:  # output of the logging library
            continue
        path, key, constant, lowest, highest = line.split("\t")
        name = Path(path).name
        found[name][int(key)] = _facts(name, int(key), constant, int(lowest), int(highest))
    return found


def _facts(jar: str, key: int, constant: str, lowest: int, highest: int) -> ReleaseApi:
    words = constant.removesuffix("_KEY").split("_")
    versions = Versions(lowest, highest) if highest >= lowest else NO_VERSIONS
    name = "".join(word.capitalize() for word in words)
    release = jar.removeprefix("kafka-clients-")
    for line, keys in PLACEHOLDERS.items():
        if release.startswith(f"{line}.") and key in keys:
            return ReleaseApi(name, NO_VERSIONS, placeholder=versions)
    return ReleaseApi(name, versions)
