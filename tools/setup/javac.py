"""Compiles Java with the `javac` of a JDK.

Without a JDK, uses Eclipse's compiler, a jar that a Java runtime can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .maven import MavenError, fetch_jar
from .once import finished_at_once
from .programs import ProgramError, run_program

__all__ = ["CompilerError", "compile_java"]

COMPILER = "org.eclipse.jdt:ecj:3.45.0"
"""Needs Java 17 to run, and reads the class files of Java 25."""

COMPILE_TIMEOUT_S = 300.0
"""In seconds. Compiling takes two; a busy machine may need more."""


class CompilerError(RuntimeError):
    """A compiler is missing and cannot be fetched, or it reports errors in the sources."""


def compile_java(
    home: Path, sources: Sequence[Path], classes: Path, *, libraries: str = "", cache: Path
) -> None:
    """Compiles `sources` with the Java at `home`, with the class path `libraries`.

    The folder `classes` appears only when it has all compiled classes. A fetched compiler is kept
    in `cache`. Only one process at a time may call this function. Raises CompilerError.
    """
    with finished_at_once(classes) as unfinished:
        path = ["-classpath", libraries] if libraries else []
        command = [*_compiler(home, cache), *path, "-d", str(unfinished), *map(str, sources)]
        try:
            run_program(command, timeout_s=COMPILE_TIMEOUT_S)
        except ProgramError as error:
            where = sources[0].parent
            raise CompilerError(f"cannot compile {where}: {error}") from error


def _compiler(home: Path, cache: Path) -> list[str]:
    """Returns the beginning of a command that compiles Java for a runtime of 17 or newer."""
    javac = home / "bin" / "javac"
    if javac.exists():
        return [str(javac), "-proc:none"]
    try:
        jar = fetch_jar(cache, COMPILER, otherwise="install a JDK, which has a compiler")
    except MavenError as error:
        raise CompilerError(str(error)) from error
    return [str(home / "bin" / "java"), "-jar", str(jar), "-17", "-proc:none", "-nowarn"]
