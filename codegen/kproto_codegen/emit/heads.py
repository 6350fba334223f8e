"""Writes the head of each generated module: docstring, the generator's mark, style, source files.

File names are untrusted; they are escaped, so that they cannot end the comment.
"""

from __future__ import annotations

from collections.abc import Sequence

from .output import MARK
from .plan import Style

__all__ = ["head"]


def head(about: str, made_from: Sequence[str], style: Style | None = None) -> list[str]:
    """Returns the lines before the code: the docstring `about`, and comments.

    `about` must contain no untrusted text.
    """
    lines = [f'"""{about}"""', "", MARK]
    if style is not None:
        lines.append(f"# Style: {style.value}.")
    if made_from:
        lines += ["# Made from:", *(f"#   {_shown(name)}" for name in made_from)]
    return lines


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)
