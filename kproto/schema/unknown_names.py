"""The error for an unknown name, release or version, which suggests the nearest known ones."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from ..wire.errors import KprotoError

__all__ = ["UnknownNameError", "nearest", "unknown_name_error"]

#: How many names an error suggests; more would hide the right one.
MAX_SUGGESTIONS: Final = 3


class UnknownNameError(KprotoError, LookupError):
    """Raised for an unknown name; the message suggests the nearest known names."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Returns the known names most like `name`, best first, in any case; at most MAX_TOLD."""
    by_folded: dict[str, str] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), each)
    # A name that contains `name`, however short, is nearer than one that only looks similar.
    folded = name.casefold()
    containing = sorted((each for each in by_folded if folded and folded in each), key=len)
    similar = get_close_matches(folded, by_folded, n=MAX_SUGGESTIONS, cutoff=0.5)
    return [by_folded[each] for each in dict.fromkeys((*containing, *similar))][:MAX_SUGGESTIONS]


def unknown_name_error(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Returns the error; `what` begins its text, such as `no message is called`."""
    names = [*known]
    found = nearest(name, names)
    if found:
        hint = f"; the nearest: {', '.join(found)}"
    else:
        hint = f"; the first is {names[0]}, the last {names[-1]}" if names else ""
    return UnknownNameError(f"{what} {name!r}{hint}")
