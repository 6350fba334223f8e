"""The head of each generated file: what it is, whose it is, its style, and what it was made from.

The names of files are input: nothing in them can leave the comment.
"""

from __future__ import annotations

from collections.abc import Sequence

from .output import MARK
from .plan import Style

__all__ = ["head"]


def head(about: str, made_from: Sequence[str], style: Style | None = None) -> list[str]:
    """Returns the lines in front of the code; `about` is the docstring, of words that were checked.

    All but that are comments, which cost nothing when the module is imported.
    """
    lines = [f'"""{about}"""', "", MARK]
    if style is not None:
        lines.append(f"# Style: {style.value}.")
    if made_from:
        lines += ["# Made from:", *(f"#   {_shown(name)}" for name in made_from)]
    return lines


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)
