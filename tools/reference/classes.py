"""Compiles the Java program in `java/` against the jars of one Kafka release, once.

With `javac` where there is a JDK, else with the compiler of Eclipse, which is one jar that a bare
Java runtime can run. Knows nothing of what the program does.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tools.kafka.jars import KafkaJarsError, resolve_jars
from tools.setup import java
from tools.setup.maven import MavenError, fetch_jar
from tools.setup.once import finished_at_once, locked
from tools.setup.programs import ProgramError, run_program

__all__ = ["ReferenceUnavailableError", "class_path"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).with_name("java")
CACHE = ROOT / ".cache" / "reference"

COMPILER = "org.eclipse.jdt:ecj:3.45.0"
"""It needs Java 17 to run, and reads the class files of Java 25."""

COMPILE_TIMEOUT_S = 300.0
"""It takes two seconds; a busy machine may need more."""


class ReferenceUnavailableError(RuntimeError):
    """There is no Java, no jar or no compiler here, and none can be fetched."""


def class_path(release: str) -> str:
    """The class path of the program on the jars of `release`, compiling it when it is not there.

    Safe in several processes at once. Raises ReferenceUnavailableError.
    """
    try:
        jars = resolve_jars(release)
        home = java.java_home()
    except (KafkaJarsError, java.JavaNotFoundError) as error:
        raise ReferenceUnavailableError(str(error)) from error
    libraries = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    classes = CACHE / f"{release}-{digest}"
    with locked(CACHE / "lock"):
        if not classes.is_dir():
            _compile(_compiler(home), sources, libraries, classes)
    return os.pathsep.join([str(classes), libraries])


def _compile(compiler: list[str], sources: list[Path], libraries: str, classes: Path) -> None:
    """Compile; the folder gets its final name only when all is there."""
    with finished_at_once(classes) as unfinished:
        command = [*compiler, "-classpath", libraries, "-d", str(unfinished), *map(str, sources)]
        try:
            run_program(command, timeout_s=COMPILE_TIMEOUT_S)
        except ProgramError as error:
            raise ReferenceUnavailableError(f"cannot compile {SOURCES}: {error}") from error


def _compiler(home: Path) -> list[str]:
    """The beginning of a command that compiles Java, for a runtime of 17 or newer."""
    javac = home / "bin" / "javac"
    if javac.exists():
        return [str(javac), "-proc:none"]
    try:
        jar = fetch_jar(CACHE, COMPILER, otherwise="install a JDK, which has a compiler")
    except MavenError as error:
        raise ReferenceUnavailableError(str(error)) from error
    return [str(home / "bin" / "java"), "-jar", str(jar), "-17", "-proc:none", "-nowarn"]
