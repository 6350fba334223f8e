"""Reads `.properties` files by the rules of `java.util.Properties`, but also decodes UTF-8.

Accepts any name; all values are text. Errors do not quote the file, because any line of it may
contain a secret.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Final

from ..wire.errors import ConfigurationError

__all__ = ["MAX_FILE_BYTES", "PropertyFileEntry", "parse_properties", "read_properties_file"]

#: Largest file that is read, in bytes. A properties file with inline certificates has about 20 KB;
#: a larger file is probably a log or a disk, named by mistake.
MAX_FILE_BYTES: Final = 1_048_576

_SPACE: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True, slots=True)
class PropertyFileEntry:
    """Holds the last value of a property, and the line of that value, counted from 1.

    `earlier_line` is the line of an earlier value that differs; None if no value differs.
    """

    value: str
    line: int
    earlier_line: int | None = None

    def __repr__(self) -> str:
        return f"Entry(line={self.line})"  # the value may be a secret


def read_properties_file(path: str | os.PathLike[str]) -> dict[str, PropertyFileEntry]:
    """Returns the properties of a file, decoded as UTF-8, or as ISO 8859-1 if it is not UTF-8.

    Raises ConfigurationError if the file is unreadable, larger than MAX_FILE_BYTES, or has an
    invalid escape. The error has the path, and the line of the escape.
    """
    name = os.fspath(path)
    try:
        from pathlib import Path  # here, because few programs have a properties file

        with Path(name).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or "it is no path"
        raise ConfigurationError(f"cannot read the properties of {name!r}: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigurationError(
            f"{name} is larger than {MAX_FILE_BYTES} bytes: is it a file of properties?"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    try:
        return parse_properties(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}, {error}") from None


def parse_properties(text: str) -> dict[str, PropertyFileEntry]:
    """Returns the properties in `text`; for a duplicate name, the last value.

    Raises ConfigurationError for an escape `\\u` without four hexadecimal digits.
    """
    found: dict[str, PropertyFileEntry] = {}
    for line, logical in _logical_lines(text):
        key = _KEY.match(logical)
        assert key is not None  # it may be empty
        value = _SEPARATOR.sub("", logical[key.end() :], count=1)
        name, entry = _unescaped(key[0], line), PropertyFileEntry(_unescaped(value, line), line)
        before = found.get(name)
        if before is not None:
            differs = before.value.strip() != entry.value.strip()
            entry = replace(entry, earlier_line=before.line if differs else before.earlier_line)
        found[name] = entry
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Returns each logical line with the number of its first natural line, without comments.

    A natural line that ends with an odd number of backslashes continues on the next line.
    """
    found: list[tuple[int, str]] = []
    pending, first_line = "", 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        part = natural.lstrip(_SPACE)
        if not pending:
            if part[:1] in ("", "#", "!"):
                continue
            first_line = number
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2:  # continued on the next line
            pending += part[:-1]
            continue
        found.append((first_line, pending + part))
        pending = ""
    if pending:
        found.append((first_line, pending))
    return found


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def one(escape: re.Match[str]) -> str:
        if escape[1] is not None:
            return chr(int(escape[1], 16))
        if escape[2] == "u":
            raise ConfigurationError(f"line {line}: an escape \\u needs four hexadecimal digits")
        return _ESCAPED.get(escape[2], escape[2])

    # Java's strings are UTF-16, so two escapes may be the surrogates of one character.
    return _SURROGATES.sub(
        lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"),
        _ESCAPE.sub(one, text),
    )
