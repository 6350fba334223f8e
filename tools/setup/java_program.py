"""Compiles a small Java program once, and runs it with the paths of libraries from Maven."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from . import java
from .javac import compile_java
from .maven import fetch_each
from .once import locked
from .programs import run_program

__all__ = ["run_java_program"]


def run_java_program(
    name: str,
    arguments: Sequence[str],
    *,
    sources: Path,
    libraries: Sequence[str],
    cache: Path,
    timeout_s: float,
) -> str:
    """Returns the output of the class `name` in the folder `sources`.

    Compiles the program into `cache` unless it is there. Passes the paths of `libraries`, joined as
    a class path, before `arguments`. Raises JavaNotFoundError, CompilerError, MavenError or
    ProgramError.
    """
    home = java.java_home()
    files = sorted(sources.glob("*.java"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    classes = cache / f"classes-{digest}"
    with locked(cache / "lock"):
        jars = fetch_each(cache, libraries, otherwise=f"put their jars into {cache}")
        if not classes.is_dir():
            compile_java(home, files, classes, cache=cache)
    path = os.pathsep.join(map(str, jars))
    command = [str(home / "bin" / "java"), "-classpath", str(classes), name, path]
    return run_program([*command, *arguments], timeout_s=timeout_s)
