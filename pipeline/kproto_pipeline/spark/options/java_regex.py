"""Translates regular expressions of java.util.regex to Python's `re`.

Spark's Kafka connector searches topic names with `java.util.regex`. Python's `re` reads many
expressions differently, such as `[a-z&&[^x]]`, `\\h` or `$`. `python_regex` returns an expression
with the same meaning for ASCII texts, which topic names are. It refuses constructs whose meaning it
cannot keep, and everything that Java refuses.

The parser follows `java.util.regex.Pattern` of Java 17 and newer. The Python expression has no
flags, because flags such as `(?i)` would change its character classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from .java_classes import (
    ASCII,
    CLASS_ESCAPES,
    Characters,
    class_text,
    fold_case,
    property_class,
    value_class,
)
from .java_regex_tokens import JavaRegexError, split_tokens

__all__ = ["JavaRegexError", "python_regex"]

#: Maximum nesting depth of groups and classes, because the parser is recursive. Java has no limit
#: except its stack.
MAX_DEPTH: Final = 100

#: The largest count of a repetition, a Java int.
_MOST_REPEATS: Final = 0x7FFF_FFFF

_FLAGS: Final = frozenset("idmsuxU")
_WORD: Final = class_text(CLASS_ESCAPES["w"])
_CHARACTER_ESCAPES: Final = {
    "a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_NEWLINES: Final = frozenset("\n\r")
_SPACE: Final = frozenset("\t\n\v\f\r ")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

#: Characters that are ASCII letters in another case, by Unicode's rules: Kelvin sign, long s,
#: dotless i, I with a dot.
_FOLDED_TO_ASCII: Final = frozenset("\u212a\u017f\u0131\u0130")

_BOUNDARY: Final = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_NO_BOUNDARY: Final = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_NOT_IN_CRLF: Final = r"(?!(?<=\r)\n)"

#: The line breaks that `\\R` matches.
_LINE_BREAK: Final = r"(?:\r\n|[\n\x0b\x0c\r])"

#: The ends that `$` and `\\Z` match, by the flags d and m.
_ENDS: Final = {
    (False, False): rf"(?:{_NOT_IN_CRLF}(?=(?:\r\n|[\n\r])?\Z))",
    (False, True): rf"(?:{_NOT_IN_CRLF}(?=[\n\r]|\Z))",
    (True, False): r"(?=\n?\Z)",
    (True, True): r"(?=\n|\Z)",
}

#: The starts that `^` matches, by the flags d and m.
_STARTS: Final = {
    (False, False): r"\A",
    (False, True): r"(?:(?!\Z)(?:\A|(?<=\n)|(?<=\r)(?!\n)))",
    (True, False): r"\A",
    (True, True): r"(?:(?!\Z)(?:\A|(?<=\n)))",
}

_UNSUPPORTED: Final = "it is not supported here"
_NO_JAVA: Final = "Java does not accept it"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the Python expression; `width` is the number of characters that the part matches.

    `width` is None if that number varies.
    """

    text: str
    width: int | None


def python_regex(expression: str) -> str:
    """Returns an expression for `re.search` that finds a match where Java's `find` does.

    The meaning is the same for ASCII texts. Raises JavaRegexError.
    """
    return _Translator(expression).translate()


class _Translator:
    """Parses a Java expression from left to right, and writes the Python expression."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = split_tokens(expression)
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._depth = 0
        self._groups = 0
        self._atomic_groups = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def translate(self) -> str:
        found = self._joined(self._choice())
        if self._at < len(self._tokens):
            self._refuse(self._at, "no group is open")
        try:
            re.compile(found.text)
        except (re.error, OverflowError, RecursionError) as error:
            raise JavaRegexError(self._expression, 0, f"Python refuses it: {error}") from None
        return found.text

    # Tokens

    def _peek(self) -> str:
        """Skips blanks and comments, then returns the next character, as `_raw` does."""
        self._skip_comments()
        return self._raw()

    def _raw(self, ahead: int = 0) -> str:
        """Returns the next character if it can be a metacharacter; "" if it is quoted."""
        at = self._at + ahead
        if at >= len(self._tokens) or self._tokens[at].is_quoted:
            return ""
        return self._tokens[at].character

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _skip_comments(self) -> None:
        while "x" in self._flags and self._raw() in _SPACE | {"#"}:
            if self._raw() == "#":
                ends = {"\n"} if "d" in self._flags else {"\n", "\r", "\x85", "\u2028", "\u2029"}
                while self._at < len(self._tokens) and self._raw() not in ends:
                    self._at += 1
            self._at = min(self._at + 1, len(self._tokens))

    def _refuse(self, start: int, reason: str) -> NoReturn:
        """Raises the error for the construct from the token `start` to the current position."""
        tokens = self._tokens
        if start >= len(tokens):
            raise JavaRegexError(self._expression, len(self._expression), reason)
        end = min(max(self._at, start + 1), len(tokens))
        first, last = tokens[start].position, tokens[end - 1].position
        raise JavaRegexError(self._expression[first : last + 1], first, reason)

    # Sequences

    def _choice(self) -> list[_Piece]:
        """Parses alternatives, up to a closing parenthesis or the end."""
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts

    @staticmethod
    def _joined(parts: list[_Piece]) -> _Piece:
        widths = {part.width for part in parts}
        return _Piece(
            "|".join(part.text for part in parts), widths.pop() if len(widths) == 1 else None
        )

    def _sequence(self) -> _Piece:
        texts: list[str] = []
        width: int | None = 0
        while True:
            one = self._peek()
            if self._at >= len(self._tokens) or one in ("|", ")"):
                return _Piece("".join(texts), width)
            part = self._atom(one)
            if part is None:
                continue
            part = self._repeated(part)
            texts.append(part.text)
            width = None if width is None or part.width is None else width + part.width

    def _atom(self, one: str) -> _Piece | None:
        """Parses the next item without its repetition; returns None for flags such as `(?i)`."""
        start = self._at
        self._at += 1
        multiline = "d" in self._flags, "m" in self._flags
        match one:
            case "(":
                return self._group(start)
            case "[":
                return _Piece(class_text(self._class(start)), 1)
            case "\\":
                return self._escape(start)
            case "^":
                return _Piece(_STARTS[multiline], 0)
            case "$":
                return _Piece(_ENDS[multiline], 0)
            case ".":
                return _Piece(class_text(self._any_character()), 1)
            case "*" | "+" | "?" | "{":
                self._refuse(start, "there is nothing to repeat")
        return self._literal(start, self._tokens[start].character)

    def _any_character(self) -> Characters:
        if "s" in self._flags:
            return ASCII
        return ASCII - ({"\n"} if "d" in self._flags else _NEWLINES)

    def _literal(self, start: int, character: str) -> _Piece:
        folded = self._folded(start, character)
        return _Piece(class_text(folded) if len(folded) > 1 else re.escape(character), 1)

    def _folded(self, start: int, character: str) -> Characters:
        """Returns the characters that a literal character matches.

        With the flag i, these are both cases of a letter. Refuses a character whose matches cannot
        be translated.
        """
        if character == "\0" or "\ud800" <= character <= "\udfff":
            self._refuse(start, _UNSUPPORTED)
        if "i" not in self._flags:
            return frozenset(character)
        if "u" in self._flags and character in _FOLDED_TO_ASCII:
            self._refuse(start, "a case of a letter outside of ASCII is not supported here")
        return fold_case(character) or frozenset(character)

    # Repetitions

    def _repeated(self, part: _Piece) -> _Piece:
        one = self._peek()
        if one not in ("*", "+", "?", "{"):
            return part
        start = self._at
        self._at += 1
        counts = one if one != "{" else self._counts(start)
        kind = self._peek()
        if kind in ("?", "+"):
            self._at += 1
        else:
            kind = ""
        least, _, most = counts.strip("{}").partition(",")
        fixed = counts.startswith("{") and (least == most or "," not in counts)
        width = part.width * int(least) if fixed and part.width is not None else None
        if part.text == _LINE_BREAK:
            part = self._atomic(part.text)  # Java does not go back into a repeated line break
        text = f"(?:{part.text}){counts}"
        if kind == "+":
            return self._atomic(text)
        return _Piece(text + kind, 0 if part.width == 0 else width)

    def _counts(self, start: int) -> str:
        """Parses the counts of a repetition after `{`; returns them in Python's syntax.

        For example, returns `{2,}` for `2,}` and `{3,3}` for `3}`.
        """
        least = self._number()
        most: str | None = least
        if self._raw() == ",":
            self._at += 1
            most = self._number() or None
            if most is None and self._raw() != "}":
                self._refuse(start, _NO_JAVA)
        is_closed = self._raw() == "}"
        self._at += 1
        if not least or not is_closed:
            self._refuse(start, "it is no repetition; write \\{ for a brace")
        if int(most or least) > _MOST_REPEATS or int(least) > int(most or least):
            self._refuse(start, "its counts are out of range")
        return f"{{{int(least)},{'' if most is None else int(most)}}}"

    def _number(self) -> str:
        start = self._at
        while self._raw() and self._raw() in "0123456789":
            self._at += 1
        return "".join(token.character for token in self._tokens[start : self._at])

    def _atomic(self, text: str) -> _Piece:
        """Returns an atomic group of `text`: a lookahead, then a reference to its match.

        A lookahead is atomic, and the reference matches the same text again. Python 3.11 has atomic
        groups, but some of its releases match them wrongly.
        """
        self._atomic_groups += 1
        name = f"a{self._atomic_groups}"
        return _Piece(f"(?:(?=(?P<{name}>{text}))(?P={name}))", None)

    # Groups

    def _group(self, start: int) -> _Piece | None:
        flags = self._flags
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(start, f"groups nest more than {MAX_DEPTH} deep")
        found = self._group_of_kind(start)
        self._depth -= 1
        if found is not None:
            self._flags = flags
        return found

    def _group_of_kind(self, start: int) -> _Piece | None:
        if self._raw() != "?":
            if self._peek() == "?":
                self._refuse(start, "a blank stands after the parenthesis")
            return self._capturing(start, None)
        self._at += 1
        kind = self._raw()
        self._at += 1
        match kind:
            case ":":
                inner = self._inner(start)
                return _Piece(f"(?:{inner.text})", inner.width)
            case "=" | "!":
                return _Piece(f"(?{kind}{self._inner(start).text})", 0)
            case ">":
                return self._atomic(self._inner(start).text)
            case "<":
                if self._raw() in ("=", "!"):
                    self._at += 1
                    return self._lookbehind(start, self._tokens[self._at - 1].character)
                return self._capturing(start, self._group_name(start))
            case _:
                self._at -= 1
                return self._flag_group(start)

    def _inner(self, start: int) -> _Piece:
        return self._joined(self._alternatives(start))

    def _alternatives(self, start: int) -> list[_Piece]:
        parts = self._choice()
        if not self._take(")"):
            self._at = start + 1
            self._refuse(start, "the group is not closed")
        return parts

    def _capturing(self, start: int, name: str | None) -> _Piece:
        self._groups += 1
        number = self._groups
        if name is not None:
            if name in self._names:
                self._refuse(start, "a group has this name already")
            self._names[name] = number
        inner = self._inner(start)
        self._closed.add(number)
        return _Piece(f"(?P<g{number}>{inner.text})", inner.width)

    def _group_name(self, start: int) -> str:
        begin = self._at
        while self._raw() and self._raw() in _LETTERS | frozenset("0123456789"):
            self._at += 1
        name = "".join(token.character for token in self._tokens[begin : self._at])
        is_closed = self._raw() == ">"
        self._at += 1
        if not is_closed or not name or name[0] not in _LETTERS:
            self._refuse(start, "a name must be ASCII letters and digits, and end with >")
        return name

    def _lookbehind(self, start: int, kind: str) -> _Piece:
        parts = self._alternatives(start)
        if any(part.width is None for part in parts):
            self._at = start + len("(?<=")
            self._refuse(start, "a lookbehind whose length varies is not supported here")
        each = [f"(?<{kind}{part.text})" for part in parts]
        return _Piece(f"(?:{('|' if kind == '=' else '').join(each)})", 0)

    def _flag_group(self, start: int) -> _Piece | None:
        flags, is_on = set(self._flags), True
        while True:
            one = self._raw()
            self._at += 1
            if one and one in _FLAGS:
                changed = {"U", "u"} if one == "U" else {one}
                flags = flags | changed if is_on else flags - changed
            elif one == "-" and is_on:
                is_on = False
            elif one and one in ":)":
                break
            else:
                self._refuse(start, "it is no group or flag that is supported here")
        self._flags = frozenset(flags)
        if one == ")":
            return None
        inner = self._inner(start)
        return _Piece(f"(?:{inner.text})", inner.width)

    # Escapes

    def _escape(self, start: int) -> _Piece:
        one = self._raw()
        self._at += 1
        if not one:
            self._refuse(start, "a backslash needs a character after it")
        if one in "pP" or one.lower() in CLASS_ESCAPES:
            return _Piece(class_text(self._class_escape(start, one)), 1)
        if one in "123456789":
            return self._reference(start, one)
        special = self._SPECIAL.get(one)
        if special is not None:
            return special(self, start)
        return self._literal(start, self._escaped_character(start, one))

    def _end(self, start: int) -> _Piece:
        return _Piece(_ENDS["d" in self._flags, False], 0)

    def _boundary(self, start: int) -> _Piece:
        if self._raw() == "{":
            self._at += 1
            self._refuse(start, _UNSUPPORTED)
        return _Piece(_BOUNDARY, 0)

    def _named_reference(self, start: int) -> _Piece:
        if self._raw() != "<":
            self._refuse(start, "the name of a group must follow, such as \\k<name>")
        self._at += 1
        number = self._names.get(self._group_name(start), 0)
        return self._referred(start, number)

    def _reference(self, start: int, digit: str) -> _Piece:
        number = int(digit)
        while self._peek() and self._peek() in "0123456789":
            longer = number * 10 + int(self._peek())
            if longer > self._groups:
                break
            number = longer
            self._at += 1
        return self._referred(start, number)

    def _referred(self, start: int, number: int) -> _Piece:
        if number not in self._closed:
            self._refuse(start, "it refers to a group that does not end before it")
        flag = "(?i:" if "i" in self._flags else "(?:"
        return _Piece(f"{flag}(?P=g{number}))", None)

    _SPECIAL: Final[dict[str, Callable[[_Translator, int], _Piece]]] = {
        "A": lambda self, start: _Piece(r"\A", 0),
        "B": lambda self, start: _Piece(_NO_BOUNDARY, 0),
        "R": lambda self, start: _Piece(_LINE_BREAK, None),
        "Z": _end,
        "b": _boundary,
        "k": _named_reference,
        "z": lambda self, start: _Piece(r"\Z", 0),
    }

    def _class_escape(self, start: int, one: str) -> Characters:
        if one in "pP":
            found = self._property(start)
        else:
            found = CLASS_ESCAPES[one.lower()]
        return ASCII - found if one.isupper() else found

    def _property(self, start: int) -> Characters:
        name = self._raw()
        self._at += 1
        if name == "{":
            begin = self._at
            while self._raw() not in ("}", ""):
                self._at += 1
            name = "".join(token.character for token in self._tokens[begin : self._at])
            is_closed = self._raw() == "}"
            self._at += 1
            if not is_closed:
                self._refuse(start, "the brace is not closed")
        ignores_case = "i" in self._flags
        key, equals, value = name.partition("=")
        if equals:
            found = value_class(key, value, ignores_case=ignores_case)
        else:
            found = property_class(name, ignores_case=ignores_case, by_unicode="U" in self._flags)
        if found is None:
            self._refuse(start, "this property is unknown, or is not supported here")
        return found

    def _escaped_character(self, start: int, one: str) -> str:
        """Returns the character of an escape such as `\\t`, `\\x41` or `\\.`."""
        if one in _CHARACTER_ESCAPES:
            return _CHARACTER_ESCAPES[one]
        if one == "0":
            return self._octal(start)
        if one == "x" and self._raw() == "{":
            self._at += 1
            digits = self._digits(8)
            is_closed = self._raw() == "}"
            self._at += 1
            code = int(digits, 16) if digits and is_closed else 0x110000
            if code > 0x10FFFF:
                self._refuse(start, "it is no character")
            return chr(code)
        if one in "xu":
            count = 2 if one == "x" else 4
            digits = self._digits(count)
            if len(digits) < count:
                self._refuse(start, f"{count} hexadecimal digits must follow")
            return chr(int(digits, 16))
        if one == "c":
            following = self._raw()
            self._at += 1
            if not following or ord(following) > 127:
                self._refuse(start, "an ASCII character must follow")
            return chr(ord(following) ^ 64)
        if one in _LETTERS:
            self._refuse(start, "this escape is unknown, or is not supported here")
        return one

    def _digits(self, most: int) -> str:
        start = self._at
        while self._at - start < most and self._raw() and self._raw() in _HEX:
            self._at += 1
        return "".join(token.character for token in self._tokens[start : self._at])

    def _octal(self, start: int) -> str:
        digits = ""
        while self._raw() and self._raw() in _OCTAL and len(digits) < 3:
            if len(digits) == 2 and digits[0] > "3":
                break
            digits += self._raw()
            self._at += 1
        if not digits:
            self._refuse(start, "octal digits must follow")
        return chr(int(digits, 8))

    # Classes

    def _class(self, start: int) -> Characters:
        """Parses a character class such as `[a-z]`; `start` is the token of its opening bracket.

        Returns the characters in the class.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(start, f"classes nest more than {MAX_DEPTH} deep")
        negated = self._raw() == "^"
        self._at += negated
        found = self._operand(start, is_first=True)
        while self._raw() == "&":  # an operand ends at a bracket or at &&
            self._at += 2
            found &= self._operand(start, is_first=False)
        self._at += 1
        self._depth -= 1
        return ASCII - found if negated else found

    def _operand(self, start: int, *, is_first: bool) -> Characters:
        """Parses a part of a character class: up to `&&`, or up to the closing bracket.

        Returns the union of the characters and classes in the part.
        """
        found: Characters = frozenset()
        begin = self._at
        begins_with_class = self._raw() == "["
        after_class = has_other = False
        while True:
            if self._at >= len(self._tokens):
                self._at = start + 1
                self._refuse(start, "the class is not closed")
            one = self._raw()
            is_intersection = one == "&" and self._raw(1) == "&"
            if is_intersection or (one == "]" and (self._at > begin or not is_first)):
                if self._at == begin or (is_intersection and self._raw(2) == "&"):
                    self._at += 1 + is_intersection
                    self._refuse(start, "&& needs a class on both sides")
                if is_intersection and not is_first and begins_with_class and has_other:
                    # Java intersects the other characters alone with the class after &&.
                    self._refuse(start, "write brackets around each side of &&")
                return found
            if one == "&" and after_class and not is_first:
                self._refuse(self._at, "a single & after && and a class is not supported here")
            if "x" in self._flags and one and (one in _SPACE or one == "#"):
                self._refuse(self._at, "with the flag x, a blank in a class is not supported here")
            after_class = one == "["
            if after_class:
                self._at += 1
                found |= self._class(self._at - 1)
            else:
                has_other = True
                found |= self._range()

    def _range(self) -> Characters:
        """Parses a character, an escape, or a range of characters in a class."""
        start = self._at
        low = self._class_character(start)
        if isinstance(low, frozenset):
            return low
        if self._raw() != "-" or self._raw(1) in ("[", "]"):
            return self._folded(start, low) & ASCII
        self._at += 1
        if self._at >= len(self._tokens):
            self._refuse(start, "the class is not closed")
        high = self._class_character(self._at, is_end=True)
        if isinstance(high, frozenset) or high < low:
            self._refuse(start, "it is no range")
        found = {it for it in ASCII if low <= it <= high}
        if "i" in self._flags:
            found |= {it for it in ASCII if low <= it.lower() <= high or low <= it.upper() <= high}
        return frozenset(found)

    def _class_character(self, start: int, *, is_end: bool = False) -> str | Characters:
        """Parses one character of a class; returns a set for a class such as `\\d`."""
        token = self._tokens[self._at]
        self._at += 1
        if token.is_quoted or token.character != "\\":
            return token.character
        one = self._raw()
        self._at += 1
        if not one:
            self._refuse(start, "a backslash needs a character after it")
        if one == "v" and (is_end or self._raw() == "-"):
            return "\v"
        if one in "pP" or one.lower() in CLASS_ESCAPES:
            return self._class_escape(start, one)
        if one in "123456789":
            self._refuse(start, _NO_JAVA)
        return self._escaped_character(start, one)
