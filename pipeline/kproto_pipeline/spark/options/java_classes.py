"""Character classes of java.util.regex, as sets of ASCII characters.

Topic names have ASCII characters only, so a class is the set of its ASCII characters. The tables
follow `java.util.regex.CharPredicates` of Java 17 and newer.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable
from typing import Final, TypeAlias

__all__ = [
    "ASCII",
    "CLASS_ESCAPES",
    "Characters",
    "class_text",
    "fold_case",
    "property_class",
    "value_class",
]

Characters: TypeAlias = frozenset[str]

ASCII: Final[Characters] = frozenset(map(chr, range(128)))

_LOWER: Final[Characters] = frozenset(string.ascii_lowercase)
_UPPER: Final[Characters] = frozenset(string.ascii_uppercase)
_LETTERS: Final = _LOWER | _UPPER
_DIGITS: Final[Characters] = frozenset(string.digits)
_WORD: Final = _LETTERS | _DIGITS | {"_"}
_CONTROLS: Final[Characters] = frozenset(map(chr, [*range(32), 127]))
_SPACE: Final[Characters] = frozenset("\t\n\v\f\r ")
_BLANK: Final[Characters] = frozenset("\t ")
_IGNORABLE: Final[Characters] = frozenset(map(chr, [*range(9), *range(0x0E, 0x1C), 127]))
_NONE: Final[Characters] = frozenset()

#: The classes of escapes such as `\\d`; the upper-case letter is the complement.
CLASS_ESCAPES: Final[dict[str, Characters]] = {
    "d": _DIGITS,
    "h": _BLANK,
    "s": _SPACE,
    "v": frozenset("\n\v\f\r"),
    "w": _WORD,
}


def _of_category(*categories: str) -> Characters:
    return frozenset(it for it in ASCII if unicodedata.category(it).startswith(categories))


_CATEGORIES: Final = (
    "Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf "
    "L M N Z C P S"
)

#: Properties that `\\p{…}`, `\\p{Is…}` and `\\p{gc=…}` name: categories, POSIX classes, and the
#: methods of `java.lang.Character`. The names are case-sensitive.
_PROPERTIES: Final[dict[str, Characters]] = {
    **{name: _of_category(name) for name in _CATEGORIES.split()},
    "LC": _LETTERS,
    "LD": _LETTERS | _DIGITS,
    "L1": ASCII,
    "all": ASCII,
    "ASCII": ASCII,
    "Alnum": _LETTERS | _DIGITS,
    "Alpha": _LETTERS,
    "Blank": _BLANK,
    "Cntrl": _CONTROLS,
    "Digit": _DIGITS,
    "Graph": ASCII - _CONTROLS - {" "},
    "Lower": _LOWER,
    "Print": ASCII - _CONTROLS,
    "Punct": frozenset(string.punctuation),
    "Space": _SPACE,
    "Upper": _UPPER,
    "XDigit": frozenset(string.hexdigits),
    "javaLowerCase": _LOWER,
    "javaUpperCase": _UPPER,
    "javaAlphabetic": _LETTERS,
    "javaIdeographic": _NONE,
    "javaTitleCase": _NONE,
    "javaDigit": _DIGITS,
    "javaDefined": ASCII,
    "javaLetter": _LETTERS,
    "javaLetterOrDigit": _LETTERS | _DIGITS,
    "javaJavaIdentifierStart": _LETTERS | {"_", "$"},
    "javaJavaIdentifierPart": _WORD | {"$"} | _IGNORABLE,
    "javaUnicodeIdentifierStart": _LETTERS,
    "javaUnicodeIdentifierPart": _WORD | _IGNORABLE,
    "javaIdentifierIgnorable": _IGNORABLE,
    "javaSpaceChar": frozenset(" "),
    "javaWhitespace": _SPACE | frozenset("\x1c\x1d\x1e\x1f"),
    "javaISOControl": _CONTROLS,
    "javaMirrored": frozenset("()<>[]{}"),
}

_POSIX_NAMES: Final = "Alpha Lower Upper Space XDigit Alnum Cntrl Digit Blank Graph Print"

#: POSIX classes by Unicode's rules, which `\\p{Is…}` names, and with the flag U also `\\p{…}`.
_POSIX_OF_UNICODE: Final[dict[str, Characters]] = {
    **{name.upper(): _PROPERTIES[name] for name in _POSIX_NAMES.split()},
    "PUNCT": _of_category("P"),
}

#: Properties of Unicode that `\\p{Is…}` names.
_UNICODE: Final[dict[str, Characters]] = {
    "ALPHABETIC": _LETTERS,
    "ASSIGNED": ASCII,
    "CONTROL": _CONTROLS,
    "HEXDIGIT": _PROPERTIES["XDigit"],
    "HEX_DIGIT": _PROPERTIES["XDigit"],
    "IDEOGRAPHIC": _NONE,
    "JOINCONTROL": _NONE,
    "JOIN_CONTROL": _NONE,
    "LETTER": _LETTERS,
    "LOWERCASE": _LOWER,
    "NONCHARACTERCODEPOINT": _NONE,
    "NONCHARACTER_CODE_POINT": _NONE,
    "TITLECASE": _NONE,
    "PUNCTUATION": _of_category("P"),
    "UPPERCASE": _UPPER,
    "WHITESPACE": _SPACE,
    "WHITE_SPACE": _SPACE,
    "WORD": _WORD,
}

#: The scripts and blocks of ASCII characters.
_SCRIPTS: Final = {
    "LATIN": _LETTERS,
    "LATN": _LETTERS,
    "COMMON": ASCII - _LETTERS,
    "ZYYY": ASCII - _LETTERS,
}
_BLOCKS: Final = {"BASICLATIN": ASCII, "BASIC LATIN": ASCII, "BASIC_LATIN": ASCII}

#: Properties of upper and lower case, which releases of Java read differently with the flag i.
_OF_CASE: Final = frozenset(
    {
        "LL", "LT", "LU", "LOWER", "UPPER", "LOWERCASE", "TITLECASE", "UPPERCASE",
        "JAVALOWERCASE", "JAVATITLECASE", "JAVAUPPERCASE",
    }
)  # fmt: skip


def property_class(name: str, *, ignores_case: bool, by_unicode: bool) -> Characters | None:
    """Returns the class of `\\p{name}`; None if it is unknown, or if its meaning is uncertain.

    `ignores_case` and `by_unicode` are the flags i and U.
    """
    if name.startswith("In"):
        return _BLOCKS.get(name[2:].upper())
    short = name.removeprefix("Is")
    if ignores_case and short.upper() in _OF_CASE:
        return None
    if name.startswith("Is"):
        upper = short.upper()
        for table in (_UNICODE, _POSIX_OF_UNICODE):
            if upper in table:
                return table[upper]
        return _PROPERTIES.get(short, _SCRIPTS.get(upper))
    if by_unicode and name.upper() in _POSIX_OF_UNICODE:
        return _POSIX_OF_UNICODE[name.upper()]
    return _PROPERTIES.get(name)


def value_class(key: str, value: str, *, ignores_case: bool) -> Characters | None:
    r"""Returns the characters that Java's `\p{key=value}` matches.

    Returns None if the class is unknown, or if the meaning is uncertain.
    """
    match key.lower():
        case "sc" | "script":
            return _SCRIPTS.get(value.upper())
        case "blk" | "block":
            return _BLOCKS.get(value.upper())
        case "gc" | "general_category" if not (ignores_case and value.upper() in _OF_CASE):
            return _PROPERTIES.get(value)
        case _:
            return None


def fold_case(characters: Iterable[str]) -> Characters:
    """Returns the ASCII characters, with both cases of each letter (the flag i)."""
    found = frozenset(characters) & ASCII
    return found | {it.lower() for it in found} | {it.upper() for it in found}


def class_text(characters: Characters) -> str:
    """Returns a character class of Python's `re` that matches exactly these ASCII characters."""
    codes = sorted(map(ord, characters))
    if not codes:
        return "[^\\x00-\\U0010ffff]"
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = ranges[-1][0], code
        else:
            ranges.append((code, code))
    parts = (
        _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
        for low, high in ranges
    )
    return f"[{''.join(parts)}]"


def _escaped(code: int) -> str:
    character = chr(code)
    return character if character in _WORD else f"\\x{code:02x}"
