"""Defines the error for an unknown name, which suggests the nearest known names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..wire.errors import KprotoError

__all__ = ["UnknownNameError", "nearest", "unknown_name_error"]

#: Maximum number of names that an error suggests.
MAX_SUGGESTIONS: Final = 3


class UnknownNameError(KprotoError, LookupError):
    """Raised for an unknown message, field, API, release or version; suggests the nearest names."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to MAX_SUGGESTIONS known names that are similar to `name`, best first.

    Ignores case.
    """
    from difflib import get_close_matches  # here, because only errors need it

    by_folded: dict[str, str] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), each)
    # Names that contain `name` come first, then similar names.
    folded = name.casefold()
    containing = sorted((each for each in by_folded if folded and folded in each), key=len)
    similar = get_close_matches(folded, by_folded, n=MAX_SUGGESTIONS, cutoff=0.5)
    return [by_folded[each] for each in dict.fromkeys((*containing, *similar))][:MAX_SUGGESTIONS]


def unknown_name_error(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Returns the error; its text begins with `what`, such as `no message is called`."""
    names = [*known]
    found = nearest(name, names)
    if found:
        hint = f"; the nearest: {', '.join(found)}"
    else:
        hint = f"; the first is {names[0]}, the last {names[-1]}" if names else ""
    return UnknownNameError(f"{what} {name!r}{hint}")
