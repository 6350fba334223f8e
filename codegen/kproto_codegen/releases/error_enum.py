"""Reads Kafka's error codes from the enum `Errors` of a release: its class file, or its source.

A code is retriable if the exception that Kafka's clients throw for it is a RetriableException.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ..error_code import ErrorCode
from ..errors import DefinitionError
from .classfile import ClassFile, ClassFileError, ConstructorReference

__all__ = [
    "ERRORS_CLASS",
    "ERRORS_SOURCE",
    "error_codes_of_classes",
    "error_codes_of_sources",
]

#: The path of the enum `Errors` in a jar, and in a source tree.
ERRORS_CLASS: Final = "org/apache/kafka/common/protocol/Errors.class"
ERRORS_SOURCE: Final = "clients/src/main/java/org/apache/kafka/common/protocol/Errors.java"

_EXCEPTIONS: Final = "org/apache/kafka/common/errors/"
_RETRIABLE: Final = "org/apache/kafka/common/errors/RetriableException"


def error_codes_of_classes(read: Callable[[str], bytes | None], *, file: str) -> list[ErrorCode]:
    """Returns the error codes of a jar, sorted by code.

    `read` returns the bytes of a class file by its path in the jar, or None if the file is missing.
    `file` names the jar in errors. Raises DefinitionError if the enum cannot be read.
    """
    data = read(ERRORS_CLASS)
    if data is None:
        raise DefinitionError(f"has no {ERRORS_CLASS}", file=file)

    def parent(name: str) -> str | None:
        found = read(name + ".class")
        return None if found is None else ClassFile(found).superclass

    codes: list[ErrorCode] = []
    try:
        for constant in ClassFile(data).enum_constants():
            numbers = [value for value in constant.arguments if isinstance(value, int)]
            if len(numbers) != 1:
                raise ClassFileError(f"the constant {constant.name} has no single number")
            exceptions = [v for v in constant.arguments if isinstance(v, ConstructorReference)]
            retriable = any(_descends(value.class_name, parent) for value in exceptions)
            codes.append(ErrorCode(constant.name, numbers[0], retriable))
    except ClassFileError as error:
        raise DefinitionError(str(error), file=f"{file}!{ERRORS_CLASS}") from error
    return _checked(codes, f"{file}!{ERRORS_CLASS}")


# A constant: NAME(code, "text" + "text", Exception::new); NONE has a lambda instead of ::new.
_CONSTANT = re.compile(
    r"^\s*([A-Z][A-Z0-9_]*)\(\s*(-?\d+)\s*,\s*"
    r"(?:null|\"(?:[^\"\\]|\\.)*\"(?:\s*\+\s*\"(?:[^\"\\]|\\.)*\")*)\s*,\s*"
    r"(?:(\w+)::new|[^;]*?)\)\s*[,;]",
    re.MULTILINE,
)
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n\"]*$", re.DOTALL | re.MULTILINE)
_EXTENDS = re.compile(r"\bclass\s+\w+\s+extends\s+(\w+)")


def error_codes_of_sources(read: Callable[[str], str | None], *, file: str) -> list[ErrorCode]:
    """Returns the error codes of a source tree, sorted by code.

    `read` returns the content of a source file by its path in the tree, or None if the file is
    missing. `file` names the tree in errors. Raises DefinitionError if the enum cannot be read.
    """
    text = read(ERRORS_SOURCE)
    if text is None:
        raise DefinitionError(f"has no {ERRORS_SOURCE}", file=file)

    def parent(name: str) -> str | None:
        source = read(f"clients/src/main/java/{name}.java")
        match = _EXTENDS.search(source) if source is not None else None
        return _EXCEPTIONS + match[1] if match else None

    codes = [
        ErrorCode(
            match[1], int(match[2]), bool(match[3]) and _descends(_EXCEPTIONS + match[3], parent)
        )
        for match in _CONSTANT.finditer(_COMMENTS.sub("", text))
    ]
    return _checked(codes, f"{file}/{ERRORS_SOURCE}")


def _descends(name: str, parent: Callable[[str], str | None]) -> bool:
    """Returns True if a class is a RetriableException.

    `parent` returns the superclass of a class, or None if the class is not found.
    """
    current: str | None = name
    seen: set[str] = set()
    while current is not None and current not in seen:
        if current == _RETRIABLE:
            return True
        seen.add(current)
        current = parent(current)
    return False


def _checked(codes: list[ErrorCode], file: str) -> list[ErrorCode]:
    """Returns the codes sorted. Raises DefinitionError if 0 is missing or a code occurs twice."""
    numbers = [entry.code for entry in codes]
    if 0 not in numbers or len(set(numbers)) != len(numbers):
        raise DefinitionError(
            f"the error codes could not be read: {len(codes)} constants found", file=file
        )
    return sorted(codes, key=lambda entry: entry.code)
