"""Generates random regular expressions of java.util.regex and RE2, and topic names."""

from __future__ import annotations

import random

__all__ = ["JAVA_ATOMS", "java_regex", "re2_regex", "topic_names"]

#: Items of an expression. Some are invalid, or valid only beside certain others.
JAVA_ATOMS = (
    *"abcxyzAB019._-^$.]}& #\n\u00fc",
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\h", r"\H", r"\v", r"\V", r"\R"),
    *(r"\b", r"\B", r"\A", r"\Z", r"\z", r"\G", r"\X", r"\1", r"\2", r"\k<n>"),
    *(r"\.", r"\-", r"\_", r"\x41", r"\x{62}", r"\u0063", r"\0101", r"\012", r"\t", r"\n"),
    *(r"\r", r"\cJ", r"\e", r"\8", r"\E", r"\j", r"\Qa.b\E", r"\Q-\E", r"\Q1\E", r"\Q"),
    *(r"\p{Alpha}", r"\p{Lower}", r"\P{Upper}", r"\pL", r"\p{Punct}", r"\p{IsAlphabetic}"),
    *(r"\p{javaLowerCase}", r"\p{IsLatin}", r"\p{InBasicLatin}", r"\p{gc=Lu}", r"\p{LD}"),
)
_CLASS_ITEMS = (
    *"abcxyzAB019._-^&] #\u00fc",
    *("a-c", "A-C", "0-9", "x-z", "--9", "+--", "a-\u00fc", r"a-\d", "&&", "[", "[:alpha:]"),
    *(r"\d", r"\D", r"\w", r"\s", r"\h", r"\v", r"\-", r"\]", r"\[", r"\^", r"\x61", r"\\"),
    *(r"\.", r"\b", r"\R", r"\Q]-\E", r"\p{Alpha}", r"\P{Lower}", r"\pL", r"\v-\x20"),
)
_OPENINGS = (
    *("(", "(", "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?<n>", "(?P<n>"),
    *("(?i:", "(?s:", "(?m:", "(?x:", "(?U:", "(?-i:", "(?iu-m:", "(?d:", "(?dm:"),
)
_FLAGS = ("i", "m", "s", "d", "x", "u", "U", "im", "-i", "-x", "i-m", "dm", "ms", "-U", "iu", "c")
_REPETITIONS = (
    *("*", "+", "?", "*", "+", "?", "{2}", "{0,1}", "{1,}", "{1,2}", "{0}"),
    *("{2,1}", "{", "{,2}", "{a}", " *"),
)
_RE2_ATOMS = (
    *"abcxyzAB019._-^$.]}",
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", r"\A", r"\z", r"\Z", r"\h"),
    *(r"\.", r"\-", r"\_", r"\x41", r"\x{62}", r"\101", r"\1", r"\8", r"\C", r"\a", r"\t"),
    *(r"\Qa.b\E", r"\Q-\E", r"\pL", r"\p{Lu}", r"\P{L}", r"\p{Latin}", r"\p{Greek}", r"\pN"),
    *("[[:alpha:]]", "[^[:digit:]]", "[[:word:]-]", r"[\d-]", r"[a-c\W]", "[]a]", "[^]a]"),
    *("[a-]", "[-a]", "[--9]", "[a&&b]", "[[a]b]", r"[\pL_]", "[a-c", "[z-a]", r"[\b]"),
)
_RE2_OPENINGS = (
    *("(", "(?:", "(?P<n>", "(?<n>", "(?i:", "(?s:", "(?m:", "(?U:", "(?i-s:", "(?=", "(?>"),
)


def java_regex(chance: random.Random, depth: int = 2) -> str:
    """Returns a random expression of java.util.regex; Java refuses about a half of them."""
    count = chance.choice((1, 1, 1, 2, 3))
    return "|".join(_sequence(chance, depth) for _ in range(count))


def _sequence(chance: random.Random, depth: int) -> str:
    return "".join(_atom(chance, depth) + _repetition(chance) for _ in range(chance.randint(0, 4)))


def _atom(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if kind < 0.25:
        return _class(chance, 2)
    if kind < 0.5 and depth:
        return chance.choice(_OPENINGS) + java_regex(chance, depth - 1) + ")"
    if kind < 0.56:
        return f"(?{chance.choice(_FLAGS)})"
    return str(chance.choice(JAVA_ATOMS))


def _class(chance: random.Random, depth: int) -> str:
    items = []
    for _ in range(chance.randint(1, 5)):
        kind = chance.random()
        if kind < 0.25 and depth:
            items.append(_class(chance, depth - 1))
        elif kind < 0.35 and depth:
            items.append("&&" + _class(chance, depth - 1))
        else:
            items.append(chance.choice(_CLASS_ITEMS))
    return f"[{chance.choice(('', '^'))}{''.join(items)}]"


def _repetition(chance: random.Random) -> str:
    if chance.random() < 0.6:
        return ""
    return chance.choice(_REPETITIONS) + chance.choice(("", "", "", "?", "+", " +"))


def re2_regex(chance: random.Random, depth: int = 2) -> str:
    """Returns a random expression of RE2; re2j refuses some."""
    parts = []
    for _ in range(chance.randint(0, 5)):
        kind = chance.random()
        if kind < 0.2 and depth:
            parts.append(chance.choice(_RE2_OPENINGS) + re2_regex(chance, depth - 1) + ")")
        elif kind < 0.25:
            parts.append(f"(?{chance.choice(('i', 's', 'm', 'U', 'i-s', '-i', 'x', 'u'))})")
        elif kind < 0.3:
            parts.append("|")
        else:
            parts.append(chance.choice(_RE2_ATOMS))
        if chance.random() < 0.3:
            parts.append(chance.choice(("*", "+", "?", "{2}", "{0,1}", "{1,}", "{,2}", "*?", "a+")))
    return "".join(parts)


def topic_names(chance: random.Random, count: int) -> list[str]:
    """Returns valid topic names, and texts that are no topic names, e.g. with line breaks."""
    return [
        *("a", "b", "c", "x", "ab", "abc", "aB", "A-B", "a.b", "a_b", "aa", "aab", "1", "0-9"),
        *("orders-2024.eu", "AB", "_", "-", ".", "abab", "a\n", "a\r\n", "\n", "\r", "a\rb"),
        *("a\nb", " ", "a b", "&", "]", "[", "^", "a&", "\t", "$", "\v", "\x1b", "x\r\ny", "k"),
        *(
            "".join(chance.choice("abcABxyz019._-") for _ in range(chance.randint(1, 8)))
            for _ in range(count)
        ),
    ]
