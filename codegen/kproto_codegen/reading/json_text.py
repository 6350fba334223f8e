"""Reads JSON strictly, with the line number of each value, for definition files.

Accepts RFC 8259 JSON with `//` and `/* */` comments, which Kafka's files have. The standard
library's reader cannot be used: it refuses comments, accepts duplicate keys, NaN and Infinity, and
does not return line numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import DefinitionError

__all__ = ["MAX_DEPTH", "JsonNode", "JsonValue", "ParsedJson", "read_json"]

#: Maximum number of levels of nested objects and arrays, so that a hostile file cannot exhaust the
#: stack. Kafka's definitions have at most 10.
MAX_DEPTH = 64

JsonValue: TypeAlias = "dict[str, JsonNode] | list[JsonNode] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value and its line. The line of a member's value is the line of its key.

    `text` is the source of a number, a boolean or null, and the content of a string.
    """

    value: JsonValue
    line: int
    text: str = ""

    @property
    def kind(self) -> str:
        """Describes the value for an error message, such as "an object" or "the number 1"."""
        match self.value:
            case dict():
                return "an object"
            case list():
                return "an array"
            case str():
                return f"the text {self.value!r}"
            case None:
                return "null"
        return f"the {'boolean' if isinstance(self.value, bool) else 'number'} {self.text}"


_COMMENT_OR_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_WORD = re.compile(r"[^\s,:{}\[\]\"/]+")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """The result of parsing a file.

    `repeated` has an error for each key that an object has twice with the same scalar value. (If
    the values are different or not scalar, the file is refused.) `trailing_line` is the line of
    content after the value, None if there is none.
    """

    root: JsonNode
    repeated: tuple[DefinitionError, ...]
    trailing_line: int | None


def read_json(text: str, *, file: str, allow_trailing: bool = False) -> ParsedJson:
    """Parses a JSON value.

    Content after the value is an error unless `allow_trailing`. Raises DefinitionError for invalid
    JSON; the error names the file and the line.
    """
    reader = _Reader(text, file)
    node = reader.value(0)
    reader.skip()
    ended = reader.position == len(text)
    if not ended and not allow_trailing:
        raise reader.error("there is content after the end of the definition")
    return ParsedJson(node, tuple(reader.repeated), None if ended else reader.line())


class _Reader:
    """Parses `text` from the current position on."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self.repeated: list[DefinitionError] = []
        self._line = 1
        self._counted = 0

    def line(self) -> int:
        """Returns the line number of the current position."""
        self._line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def error(self, reason: str) -> DefinitionError:
        """Returns a DefinitionError at the current position."""
        return DefinitionError(reason, file=self.file, line=self.line())

    def skip(self) -> None:
        """Skips white space and comments."""
        match = _COMMENT_OR_SPACE.match(self.text, self.position)
        if match:
            self.position = match.end()
        if self.text.startswith("/*", self.position):
            raise self.error("a /* comment has no end")

    def peek(self) -> str:
        """Skips white space and comments; returns the next character, "" at the end."""
        self.skip()
        return self.text[self.position : self.position + 1]

    def value(self, depth: int) -> JsonNode:
        """Parses the JSON value at the current position, and returns it."""
        if depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} deep")
        match self.peek():
            case "":
                raise self.error("the text ends, but a value must follow")
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                line = self.line()
                text = self._string()
                return JsonNode(text, line, text)
        return self._scalar()

    def _scalar(self) -> JsonNode:
        match = _WORD.match(self.text, self.position)
        if match is None:
            raise self.error(f"{self.text[self.position]!r} is not the start of a value")
        word, line = match[0], self.line()
        if word in _LITERALS:
            self.position = match.end()
            return JsonNode(_LITERALS[word], line, word)
        number = _NUMBER.fullmatch(word)
        if number is None:
            if word.startswith("'"):
                raise self.error("text is in single quotes; JSON requires double quotes")
            raise self.error(f"{word!r} is no JSON value")
        self.position = match.end()
        fractional = number[1] or number[2]
        try:
            return JsonNode(float(word) if fractional else int(word), line, word)
        except ValueError:  # int() refuses thousands of digits
            raise self.error(f"a number of {len(word)} characters is too long") from None

    def _object(self, depth: int) -> JsonNode:
        start = self.line()
        members: dict[str, JsonNode] = {}
        self.position += 1
        if self.peek() == "}":
            self.position += 1
            return JsonNode(members, start)
        while True:
            if self.peek() != '"':
                raise self.error("a key in double quotes must follow")
            line = self.line()
            key = self._string()
            if self.peek() != ":":
                raise self.error(f"a colon must follow the key {key!r}")
            self.position += 1
            node = self.value(depth + 1)
            if key in members:
                self._check_duplicate(key, line, members[key], node)
            members[key] = JsonNode(node.value, line, node.text)
            if not self._goes_on("}", "object"):
                return JsonNode(members, start)

    def _check_duplicate(self, key: str, line: int, first: JsonNode, second: JsonNode) -> None:
        """Stores an error for a key that an object has twice with the same scalar value.

        Raises DefinitionError if the values differ or are not scalar.
        """
        reason = f"the key {key!r} occurs twice, first on line {first.line}"
        error = DefinitionError(reason, file=self.file, line=line)
        same = type(first.value) is type(second.value) and first.text == second.text
        if isinstance(second.value, dict | list) or not same:
            raise error
        self.repeated.append(error)

    def _array(self, depth: int) -> JsonNode:
        start = self.line()
        elements: list[JsonNode] = []
        self.position += 1
        if self.peek() == "]":
            self.position += 1
            return JsonNode(elements, start)
        while True:
            elements.append(self.value(depth + 1))
            if not self._goes_on("]", "array"):
                return JsonNode(elements, start)

    def _goes_on(self, end: str, what: str) -> bool:
        """Skips a comma or the end character; returns True for a comma."""
        found = self.peek()
        if found not in {",", end} or not found:
            fault = "the text ends" if not found else f"{found!r} is"
            raise self.error(f"{fault} inside an {what}; a comma or {end!r} must follow")
        self.position += 1
        return found == ","

    def _string(self) -> str:
        parts: list[str] = []
        self.position += 1
        while True:
            plain = _PLAIN.match(self.text, self.position)
            if plain:
                parts.append(plain[0])
                self.position = plain.end()
            match self.text[self.position : self.position + 1]:
                case '"':
                    self.position += 1
                    return "".join(parts)
                case "\\":
                    parts.append(self._escape())
                case _:
                    raise self.error("a text in quotes does not end on its line")

    def _escape(self) -> str:
        letter = self.text[self.position + 1 : self.position + 2]
        if letter in _ESCAPES:
            self.position += 2
            return _ESCAPES[letter]
        if letter != "u":
            raise self.error(f"\\{letter} is no JSON escape")
        unit = self._utf16_unit()
        if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.position):
            low = self._utf16_unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            raise self.error("a surrogate pair lacks one half")
        if 0xD800 <= unit < 0xE000:
            raise self.error("a surrogate pair lacks one half")
        return chr(unit)

    def _utf16_unit(self) -> int:
        match = _HEX4.match(self.text, self.position + 2)
        if match is None:
            raise self.error("\\u requires four hexadecimal digits")
        self.position = match.end()
        return int(match[0], 16)
