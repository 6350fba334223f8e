"""Describes errors of Spark, Java and file systems in one line, in their own words.

The Java process has the words of most errors, so they must be read before Spark stops. A message of
Spark may contain a stack trace of Java, a traceback of Python and a query plan. The line has none
of them, but it has the message of the last cause.
"""

from __future__ import annotations

import re
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kproto.wire.errors import KprotoError

from .errors import SparkError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["describe_error", "one_line", "spark_errors"]

#: The most characters of a line; a plan or a list of files can have many thousands.
_MAX_CHARACTERS: Final = 2_000

#: The most causes of a Java exception that are read.
_MAX_CAUSES: Final = 20

_LOST: Final = "the connection to Spark's Java process was lost"

_TRACEBACK: Final = "Traceback (most recent call last):"

#: The line between the words of Spark and a stack trace.
_END: Final = re.compile(r"\n+(?:JVM stacktrace|Driver stacktrace):")

#: Lines without words: Java's frames, nodes of a query plan, Python's lines between two exceptions.
_NO_WORDS: Final = re.compile(
    r"\s*(?:at [\w.$/]+[(.<]|\.\.\. \d+ (?:more|common frames)|Suppressed: |"
    r"(?:[:|] ?)*\s*(?:[:+]- |'?\w+ \[)|"
    r"During handling of the above exception|The above exception was the direct cause)"
)

_CAUSE: Final = "Caused by: "

#: Packages whose own assertions and attribute errors mean that Spark is not available.
_SPARK_PACKAGES: Final = ("pyspark", "py4j")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raises SparkError for an error of Spark, Java or a file system in the block.

    Reads the words of the error at once, because Java may have ended later.
    """
    try:
        yield
    except KprotoError:
        raise
    except Exception as error:
        if not _is_spark_error(error):
            raise
        raise SparkError(describe_error(error), _details(error)) from error


def _is_spark_error(error: Exception) -> bool:
    """Returns True for an error of Spark, py4j or a file system."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException | Py4JError | OSError | EOFError):
        return True
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    module = "" if frame is None else str(frame.tb_frame.f_globals.get("__name__"))
    return module.partition(".")[0] in _SPARK_PACKAGES


def _details(error: Exception) -> str:
    """Returns the traceback of an error as text, with the stack trace of Java."""
    return "".join(traceback.format_exception(error)).rstrip()


def describe_error(error: BaseException) -> str:
    """Returns the words of an error in one line: its message, and the message of its last cause.

    The words of a Java exception are read from the Java process. Without this process the line has
    the words that Python already knows.
    """
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    throwable = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if throwable is not None:
        try:
            return one_line("\n".join(_java_messages(throwable)))
        except Exception:  # noqa: BLE001 - the Java process has ended
            known = getattr(error, "_desc", None) or getattr(error, "errmsg", None)
            return one_line(str(known or f"{type(error).__name__}; {_LOST}"))
    try:
        words = one_line(str(error)) or type(error).__name__
    except Exception:  # noqa: BLE001 - PySpark asks the Java process, which has ended
        words = one_line(str(getattr(error, "_desc", "") or type(error).__name__))
    is_lost = isinstance(error, Py4JNetworkError | ConnectionError | AssertionError | EOFError) or (
        isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    )
    return f"{_LOST}: {words}" if is_lost else words


def _java_messages(throwable: Any) -> list[str]:
    """Returns the message of a Java exception, and those of its causes as lines `Caused by: …`."""
    found: list[str] = []
    for _ in range(_MAX_CAUSES):
        message = throwable.getMessage()
        # A message without a condition is often only a name: the class says what is wrong with it.
        text = str(message) if str(message).startswith("[") else str(throwable.toString())
        found.append(f"{_CAUSE}{text}" if found else text)
        throwable = throwable.getCause()
        if throwable is None:
            break
    return found


def one_line(text: str) -> str:
    """Returns a message as one line: its own words, and those of its last cause.

    Leaves out stack traces, tracebacks and query plans.
    """
    lines: list[str] = []
    causes: list[str] = []
    found = lines
    for line in _words(text):
        if line.startswith(_CAUSE):
            found = [line.removeprefix(_CAUSE)]
            causes.append("")
        else:
            found.append(line)
        if causes:
            causes[-1] = _joined(found)
    words = _joined(lines)
    if causes and causes[-1] and causes[-1] not in words:
        words = f"{words}; caused by: {causes[-1]}" if words else causes[-1]
    if len(words) > _MAX_CHARACTERS:
        words = f"{words[:_MAX_CHARACTERS].rstrip()} …"
    return words


def _words(text: str) -> Iterator[str]:
    """Yields the lines of a message that are neither frames nor nodes of a query plan."""
    in_traceback = False
    for part in re.split(rf"\n(?={_CAUSE})", text):
        for line in _END.split(part)[0].split("\n"):
            before, found, _ = line.partition(_TRACEBACK)
            if found:
                in_traceback = True
                line = before
            elif in_traceback and (not line.strip() or line[0].isspace()):
                continue  # a frame of Python, or the line of its code
            elif _NO_WORDS.match(line):
                continue
            else:
                in_traceback = False
            if line.strip():
                yield line


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
