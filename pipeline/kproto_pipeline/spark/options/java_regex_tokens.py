"""Splits an expression of java.util.regex into characters, and defines `JavaRegexError`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["JavaRegexError", "Token", "split_tokens"]


class JavaRegexError(ValueError):
    """Raised for an expression that Java refuses, or that has a construct without a translation.

    `construct` is the text of the construct, `index` is its position in the expression.
    """

    def __init__(self, construct: str, index: int, reason: str) -> None:
        super().__init__(f"{construct!r} near index {index}: {reason}")
        self.construct = construct
        self.index = index


class Token(NamedTuple):
    """A character; between `\\Q` and `\\E` it is quoted, and so literal."""

    character: str
    position: int
    is_quoted: bool


def split_tokens(expression: str) -> list[Token]:
    """Returns a token for each character of a Java regular expression.

    `\\Q` and `\\E` have no token; the tokens between them are quoted.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(expression):
        if expression.startswith("\\Q", at):
            end = expression.find("\\E", at + 2)
            stop = len(expression) if end < 0 else end
            tokens += (Token(expression[it], it, True) for it in range(at + 2, stop))
            at = stop + 2
            continue
        size = 2 if expression[at] == "\\" else 1
        tokens += (
            Token(it, at + step, False) for step, it in enumerate(expression[at : at + size])
        )
        at += size
    return tokens
