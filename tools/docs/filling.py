"""Replaces the marks in a page, such as `<!-- tools.docs: settings client -->`, by tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from .commands import command_pages
from .configs import configs_table
from .protocol_tables import error_codes, message_index
from .settings import settings_table

__all__ = ["MARK", "fill", "marks"]

MARK: Final = re.compile(r"^<!-- tools\.docs: ([a-z-]+)(?: ([a-z-]+))? -->$", re.MULTILINE)

_MAKERS: Final[dict[str, Callable[..., str]]] = {
    "settings": lambda of: f'<div class="settings" markdown>\n\n{settings_table(of)}\n</div>\n',
    "commands": command_pages,
    "configs": configs_table,
    "messages": message_index,
    "error-codes": error_codes,
}


def fill(text: str) -> str:
    """Replaces the marks of a page by tables. Raises LookupError for an unknown mark."""
    return MARK.sub(_made, text)


def marks(text: str) -> Iterator[str]:
    """Yields the marks of a page as they are written."""
    for match in MARK.finditer(text):
        yield match[0]


def _made(match: re.Match[str]) -> str:
    name, argument = match.groups()
    if name not in _MAKERS:
        raise LookupError(f"{match[0]}: there is no {name}; there are {', '.join(_MAKERS)}")
    return _MAKERS[name](*([argument] if argument else []))
