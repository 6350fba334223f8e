"""Compiles the Java program in `java/` for one Kafka release, once."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tools.kafka.jars import KafkaJarsError, resolve_jars
from tools.setup import java
from tools.setup.javac import CompilerError, compile_java
from tools.setup.once import locked

__all__ = ["ReferenceUnavailableError", "class_path"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).with_name("java")
CACHE = ROOT / ".cache" / "reference"


class ReferenceUnavailableError(RuntimeError):
    """Java, a jar or a compiler is missing and cannot be fetched."""


def class_path(release: str, folder: Path = SOURCES) -> str:
    """Returns the class path of the Java program in `folder`, with the jars of `release`.

    Compiles the program unless the cache has it. Safe if several processes call it at once. Raises
    ReferenceUnavailableError.
    """
    try:
        jars = resolve_jars(release)
        home = java.java_home()
    except (KafkaJarsError, java.JavaNotFoundError) as error:
        raise ReferenceUnavailableError(str(error)) from error
    libraries = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    sources = sorted(folder.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    classes = CACHE / f"{release}-{digest}"
    with locked(CACHE / "lock"):
        if not classes.is_dir():
            try:
                compile_java(home, sources, classes, libraries=libraries, cache=CACHE)
            except CompilerError as error:
                raise ReferenceUnavailableError(str(error)) from error
    return os.pathsep.join([str(classes), libraries])
