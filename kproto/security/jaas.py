"""Reads `sasl.jaas.config`: one login module with its options, as Kafka's clients read it.

Accepts a login module of any name. Errors do not quote the value, because it contains passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..wire.errors import ConfigurationError

__all__ = ["LoginModule", "parse_jaas"]

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
      | (?P<mark>[=;])
      | "(?P<double>(?:\\.|[^"\\\r\n])*)"
      | '(?P<single>(?:\\.|[^'\\\r\n])*)'
      | (?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)

_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoginModule:
    """Holds the class name of a login module, unchanged, and the module's options."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Returns the login module in `CLASS FLAG key="value" …;`; values may be in ' or " quotes.

    Raises ConfigurationError for invalid syntax; the error quotes nothing of `text`.
    """
    tokens = list(_tokens(text))
    if not tokens:
        raise _fault("is empty")
    if tokens[-1] != (True, ";"):
        raise _fault(
            "does not end with ';': is it whole? In a file, a line that goes on ends with '\\'"
        )
    body = tokens[:-1]
    if (True, ";") in body:
        raise _fault("has more than one login module, or a ';' outside of quotes: leave one")
    if len(body) < 2 or body[0][0] or body[1][0]:
        raise _fault("must begin with the class of a login module and a flag, such as 'required'")
    if body[1][1].lower() not in _FLAGS:
        raise _fault(f"must have one of {', '.join(_FLAGS)} after the class of its login module")
    options: dict[str, str] = {}
    rest = body[2:]
    for place in range(0, len(rest), 3):
        key, equals, value = (*rest[place : place + 3], (True, ""), (True, ""))[:3]
        if key[0] or equals != (True, "=") or value[0]:
            raise _fault(
                f'has no key="value" as its option {place // 3 + 1}: put values into '
                "quotes, and a '\\' before a quote in a value"
            )
        options[key[1]] = value[1]
    return LoginModule(body[0][1], options)


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Yields each token: (True, "=" or ";"), or (False, a word or the content of quotes)."""
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _fault("has a quote that is not closed on its line")
        position = found.end()
        kind = found.lastgroup
        if kind == "mark":
            yield True, found[0]
        elif kind in ("double", "single"):
            yield False, _ESCAPE.sub(_unescaped, found[kind])
        elif kind == "word":
            yield False, found[0]


def _unescaped(escape: re.Match[str]) -> str:
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


def _fault(what: str) -> ConfigurationError:
    return ConfigurationError(f"sasl.jaas.config {what}")
