"""Parses regular expressions in the syntax of RE2, and matches complete topic names.

Kafka's brokers use re2j 1.8 (https://github.com/google/re2/wiki/Syntax). Python's `re` has
backreferences and lookaround, and a match may take exponential time. In this module, the time of a
match is polynomial in the lengths of the expression and the name.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

__all__ = ["InvalidExpressionError", "Re2Pattern"]

#: Maximum repetition count, and maximum product of the counts of nested repetitions.
_MOST_REPEATS: Final = 1000

#: Maximum nesting depth of groups. re2j allows more, but parser and matcher are recursive here.
_MOST_DEPTH: Final = 100

_NO_END: Final = -1

Test: TypeAlias = Callable[[str], bool]


class InvalidExpressionError(ValueError):
    """Raised for an invalid expression; the text is the reason."""


@dataclass(eq=False, slots=True)
class _RegexChar:
    """Matches one character."""

    test: Test


@dataclass(eq=False, slots=True)
class _RegexAssertion:
    """Matches the empty text at a position for which `holds(text, position)` is true."""

    holds: Callable[[str, int], bool]


@dataclass(eq=False, slots=True)
class _RegexSequence:
    parts: list[_Node]


@dataclass(eq=False, slots=True)
class _Alternation:
    parts: list[_Node]


@dataclass(eq=False, slots=True)
class _Repeat:
    part: _Node
    least: int
    most: int


_Node: TypeAlias = _RegexChar | _RegexAssertion | _RegexSequence | _Alternation | _Repeat


class Re2Pattern:
    """Parses an expression, and matches names. Raises InvalidExpressionError."""

    def __init__(self, text: str) -> None:
        self._node = _RegexParser(text).parse()
        if _repeats(self._node) > _MOST_REPEATS:
            raise InvalidExpressionError("invalid repeat count: repeated more than 1000 times")

    def matches(self, name: str) -> bool:
        """Returns True if the expression matches the complete name."""
        return len(name) in _RegexMatcher(name).ends(self._node, 0)


def _repeats(node: _Node) -> int:
    if isinstance(node, _Repeat):
        times = max(node.least, node.most, 1) if node.least > 1 or node.most > 1 else 1
        return times * _repeats(node.part)
    if isinstance(node, _RegexSequence | _Alternation):
        return max((_repeats(part) for part in node.parts), default=1)
    return 1


class _RegexMatcher:
    """Computes the positions in one text at which a match of a part of the expression can end.

    Caches the result for each part and start position.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, node: _Node, start: int) -> frozenset[int]:
        key = id(node), start
        if key not in self._known:
            self._known[key] = self._ends(node, start)
        return self._known[key]

    def _ends(self, node: _Node, start: int) -> frozenset[int]:
        if isinstance(node, _RegexChar):
            fits = start < len(self._text) and node.test(self._text[start])
            return frozenset({start + 1}) if fits else frozenset()
        if isinstance(node, _RegexAssertion):
            return frozenset({start}) if node.holds(self._text, start) else frozenset()
        if isinstance(node, _Alternation):
            return frozenset().union(*(self.ends(part, start) for part in node.parts))
        if isinstance(node, _RegexSequence):
            positions = frozenset({start})
            for part in node.parts:
                positions = self._after(part, positions)
            return positions
        return self._repeated(node, start)

    def _after(self, node: _Node, positions: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(self.ends(node, position) for position in positions))

    def _repeated(self, node: _Repeat, start: int) -> frozenset[int]:
        positions = frozenset({start})
        for _ in range(node.least):
            positions = self._after(node.part, positions)
        found = new = positions
        more = node.most - node.least
        while new and (node.most == _NO_END or more > 0):
            new = self._after(node.part, new) - found
            found |= new
            more -= 1
        return found


def _is_word(text: str, position: int) -> bool:
    return 0 <= position < len(text) and text[position] in _WORD


def _at_boundary(text: str, position: int) -> bool:
    return _is_word(text, position - 1) != _is_word(text, position)


_DIGITS: Final = frozenset(string.digits)
_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_SPACE: Final = frozenset("\t\n\f\r ")
_PERL: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_POSIX: Final = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": _DIGITS,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(string.hexdigits),
}
_ESCAPES: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASSERTIONS: Final[dict[str, Callable[[str, int], bool]]] = {
    "A": lambda text, position: position == 0,
    "z": lambda text, position: position == len(text),
    "b": _at_boundary,
    "B": lambda text, position: not _at_boundary(text, position),
}
#: The general categories of Unicode, and the names of scripts. Topic names have only characters of
#: the scripts Latin and Common, so no other script matches.
_CATEGORY: Final = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
_SCRIPT: Final = re.compile(
    "Arabic|Armenian|Bengali|Common|Cyrillic|Devanagari|Georgian|Greek|Gujarati|Han|Hangul|Hebrew|"
    "Hiragana|Inherited|Kannada|Katakana|Khmer|Lao|Latin|Malayalam|Mongolian|Myanmar|Sinhala|Tamil|"
    "Telugu|Thai|Tibetan"
)


@dataclass(slots=True)
class _RegexFlags:
    """Holds the flags that are set in a part of an expression.

    `i` ignores case, `m` makes `^` and `$` match at line breaks, `s` makes `.` match a newline. `U`
    has no effect on the match of a complete name.
    """

    set: frozenset[str] = field(default_factory=frozenset)

    def __contains__(self, flag: str) -> bool:
        return flag in self.set


class _RegexParser:
    """Parses one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = _RegexFlags()
        self._depth = 0
        self._names: set[str] = set()

    def parse(self) -> _Node:
        node = self._choice()
        if self._at < len(self._text):
            raise InvalidExpressionError("unexpected ): no group is open")
        return node

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._at += len(text)
            return True
        return False

    def _next(self, missing: str) -> str:
        if self._at >= len(self._text):
            raise InvalidExpressionError(missing)
        self._at += 1
        return self._text[self._at - 1]

    def _choice(self) -> _Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return _Alternation(parts)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        repeated = False
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            counts = self._counts()
            if counts is None:
                # If a brace begins no repetition, re2j reads the brace literally, but refuses a
                # repetition of the brace.
                repeated = self._peek("{")
                parts += self._atoms()
                continue
            if not parts or repeated:
                what = "invalid nested repetition operator" if repeated else "missing argument"
                raise InvalidExpressionError(f"{what} before position {self._at}")
            parts.append(_Repeat(parts.pop(), *counts))
            repeated = True
        return _RegexSequence(parts)

    def _counts(self) -> tuple[int, int] | None:
        """Parses a repetition; returns its minimum and maximum, or None without a repetition."""
        found: tuple[int, int] | None = None
        if self._take("*"):
            found = 0, _NO_END
        elif self._take("+"):
            found = 1, _NO_END
        elif self._take("?"):
            found = 0, 1
        elif self._peek("{"):
            found = self._numbers()
        if found is not None:
            self._take("?")  # lazy repetitions match the same complete names as greedy ones
        return found

    def _numbers(self) -> tuple[int, int] | None:
        """Parses a repetition in braces; for a literal brace, parses nothing and returns None."""
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : max(end, 0)].partition(",")
        if end < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        low = int(least)
        high = low if not comma else int(most) if most else _NO_END
        if max(low, high) > _MOST_REPEATS or _NO_END < high < low:
            raise InvalidExpressionError(f"invalid repeat count at position {self._at}")
        self._at = end + 1
        return low, high

    def _atoms(self) -> list[_Node]:
        r"""Parses the next item, and returns the parsed elements.

        Most items are one element. Each character of `\Q…\E` is an element. Flags are no element.
        """
        if self._take("("):
            return self._group()
        if self._take("\\Q"):
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at : end if end >= 0 else None]
            self._at = len(self._text) if end < 0 else end + 2
            return [self._char(it) for it in quoted]
        one = self._next("")
        if one == "[":
            return [_RegexChar(self._class())]
        if one == ".":
            every = "s" in self._flags
            return [_RegexChar(lambda it: every or it != "\n")]
        if one in "^$":
            return [_RegexAssertion(self._edge(one))]
        if one == "\\":
            return [self._escape()]
        return [self._char(one)]

    def _edge(self, which: str) -> Callable[[str, int], bool]:
        lines = "m" in self._flags
        if which == "^":
            return lambda text, at: at == 0 or (lines and text[at - 1] == "\n")
        return lambda text, at: at == len(text) or (lines and text[at] == "\n")

    def _char(self, one: str) -> _RegexChar:
        return _RegexChar(self._folded(lambda it: it == one))

    def _folded(self, test: Test) -> Test:
        if "i" not in self._flags:
            return test
        return lambda it: test(it) or test(it.lower()) or test(it.upper())

    def _group(self) -> list[_Node]:
        flags = self._flags
        if self._take("?") and self._opening():
            return []
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise InvalidExpressionError("expression nests too deeply")
        node = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise InvalidExpressionError("missing closing )")
        self._flags = flags
        return [node]

    def _opening(self) -> bool:
        """Parses the name or flags after `(?`; returns True if the group ends after its flags."""
        if self._take("P<") or self._take("<"):
            name = self._text[self._at : self._text.find(">", self._at)]
            if not name or not set(name) <= _WORD or name in self._names or not self._has(name):
                raise InvalidExpressionError("invalid named capture")
            self._names.add(name)
            self._at += len(name) + 1
            return False
        flags, sets, some = set(self._flags.set), True, False
        while True:
            one = self._next("missing argument to (?")
            if one in "imsU":
                (flags.add if sets else flags.discard)(one)
                some = True
            elif one == "-" and sets:
                sets, some = False, False
            elif one in ":)" and (sets or some):
                self._flags = _RegexFlags(frozenset(flags))
                return one == ")"
            else:
                raise InvalidExpressionError(f"invalid or unsupported Perl syntax: (?{one}")

    def _has(self, name: str) -> bool:
        return self._text.startswith(f"{name}>", self._at)

    # Escapes and classes

    def _escape(self) -> _Node:
        one = self._text[self._at : self._at + 1]
        if one in _ASSERTIONS and one:
            self._at += 1
            return _RegexAssertion(_ASSERTIONS[one])
        test = self._known_class()
        if test is not None:
            return _RegexChar(self._folded(test))
        return self._char(self._escaped())

    def _known_class(self) -> Test | None:
        """Parses a class such as `\\d` after its backslash; returns None if no class follows."""
        one = self._text[self._at : self._at + 1]
        if one.lower() in _PERL and one:
            self._at += 1
            return _of(_PERL[one.lower()], one.isupper())
        if one in ("p", "P"):
            self._at += 1
            return self._unicode_class(one == "P")
        return None

    def _unicode_class(self, negated: bool) -> Test:
        name = self._next("invalid character class range")
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise InvalidExpressionError("invalid character class range")
            name, self._at = self._text[self._at : end], end + 1
            if name.startswith("^"):
                name, negated = name[1:], not negated
        if _CATEGORY.fullmatch(name):
            return lambda it: unicodedata.category(it).startswith(name) != negated
        if name == "Any":
            return lambda it: not negated
        if _SCRIPT.fullmatch(name):
            inside = name == "Latin"
            common = name == "Common"
            return lambda it: (inside if it.isalpha() else common) != negated
        raise InvalidExpressionError(f"invalid character class range: {name}")

    def _escaped(self) -> str:
        one = self._next("trailing backslash at end of expression")
        if one in _ESCAPES:
            return _ESCAPES[one]
        if one == "x":
            return self._hexadecimal()
        following = self._text[self._at : self._at + 1]
        if one == "0" or ("1" <= one <= "7" and "0" <= following <= "7" and following):
            digits = one
            while len(digits) < 3 and (self._text[self._at : self._at + 1] or "8") in "01234567":
                digits += self._next("")
            return chr(int(digits, 8))
        if one.isascii() and not one.isalnum():
            return one
        raise InvalidExpressionError(f"invalid escape sequence: \\{one}")

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits = self._text[self._at : max(end, 0)]
            self._at = end + 1
        else:
            digits = self._text[self._at : self._at + 2]
            self._at += 2
            digits = digits if len(digits) == 2 else ""
        if not digits or not set(digits) <= set(string.hexdigits) or int(digits, 16) > 0x10FFFF:
            raise InvalidExpressionError("invalid escape sequence: \\x")
        return chr(int(digits, 16))

    def _class(self) -> Test:
        missing = "missing closing ]"
        negated = self._take("^")
        tests: list[Test] = []
        first = True
        while first or not self._peek("]"):
            if self._at >= len(self._text):
                raise InvalidExpressionError(missing)
            first = False
            test = self._named_class() if self._peek("[:") else None
            if test is None and self._peek("\\"):
                self._at += 1
                test = self._known_class()
                self._at -= test is None
            tests.append(test or self._range(missing))
        self._at += 1
        folded = self._folded(lambda it: any(test(it) for test in tests))
        return lambda it: folded(it) != negated

    def _named_class(self) -> Test | None:
        end = self._text.find(":]", self._at + 2)
        if end < 0:
            return None
        name = self._text[self._at + 2 : end]
        plain = name.removeprefix("^")
        if plain not in _POSIX:
            raise InvalidExpressionError(f"invalid character class range: [:{name}:]")
        self._at = end + 2
        return _of(_POSIX[plain], name != plain)

    def _range(self, missing: str) -> Test:
        low = self._class_char(missing)
        high = low
        if self._peek("-") and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            high = self._class_char(missing)
        elif self._peek("-") and self._at + 1 >= len(self._text):
            raise InvalidExpressionError(missing)
        if high < low:
            raise InvalidExpressionError(f"invalid character class range: {low}-{high}")
        return lambda it: low <= it <= high

    def _class_char(self, missing: str) -> str:
        one = self._next(missing)
        return self._escaped() if one == "\\" else one


def _of(characters: frozenset[str], negated: bool) -> Test:
    return lambda it: (it in characters) != negated


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0"))
