"""Finds output paths with which the job could write one increment, but not the next.

Works on the text of paths: reads no file, and imports no Spark.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .settings import JobSettings

__all__ = ["paths_problem"]

#: Spark reads a path with one of these characters as a pattern of paths.
_PATTERN_CHARACTERS: Final = "{}[]*?\\"

#: The names of the job's own folders begin with this prefix.
_OWN_PREFIX: Final = "_kproto"


def paths_problem(
    settings: JobSettings, output: str | None, letters: str | None = None
) -> str | None:
    """Returns why a job cannot use the paths of its output and dead letters; None if it can.

    `output` and `letters` are the paths as set, or both are absolute.
    """
    if output is None or not settings.output.is_files:
        return None
    problem = _pattern_problem(output)
    if problem is None and letters is not None:
        problem = _letters_problem(output, letters, settings.mode)
    return problem


def _pattern_problem(output: str) -> str | None:
    found = [each for each in _PATTERN_CHARACTERS if each in output]
    if not found:
        return None
    return (
        f"output.path is {output}: Spark takes a path with {' '.join(found)} for a pattern, and "
        "the job could not read its increments again; name a folder without "
        f"{' '.join(_PATTERN_CHARACTERS)}"
    )


def _letters_problem(output: str, letters: str, mode: str) -> str | None:
    """Returns why the folder of the dead letters does not fit to the output; None if it fits.

    A folder may be in the other if readers skip the name of the folder between them, because it
    begins with "_" or ".". In the mode `once` it may not: the outer folder is replaced as a whole.
    """
    if posixpath.normpath(output) == posixpath.normpath(letters):
        return (
            "dead_letters.path equals output.path; leave the section [dead_letters] out to write "
            "invalid records to the output"
        )
    for inner, outer, name in (
        ("dead_letters.path", "output.path", _first_name(output, letters)),
        ("output.path", "dead_letters.path", _first_name(letters, output)),
    ):
        is_skipped = name.startswith(("_", ".")) and not name.startswith(_OWN_PREFIX)
        if name and (mode == "once" or not is_skipped):
            return (
                f"{inner} is in the folder of {outer}, in which the job has only its increments; "
                "name two folders side by side"
            )
    return None


def _first_name(folder: str, path: str) -> str:
    """Returns the first name of `path` below `folder`; "" if `path` is not in `folder`."""
    start = posixpath.normpath(folder).rstrip("/") + "/"
    path = posixpath.normpath(path)
    return path.removeprefix(start).partition("/")[0] if path.startswith(start) else ""
