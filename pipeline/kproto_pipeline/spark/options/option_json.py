"""Parses the JSON of an option: an object in which no name occurs twice.

If a name occurs twice, Python's `json` would silently keep only its last value.
"""

from __future__ import annotations

import json

from .errors import OptionError

__all__ = ["read_json_object"]


class _DuplicateName(Exception):  # noqa: N818 - never leaves this module
    """A name occurs twice in one object."""


def read_json_object(option: str, text: str, *, expected: str) -> dict[str, object]:
    """Parses a JSON object; `expected` describes the right JSON for the error.

    Raises:
        OptionError: `text` is not a JSON object, or has a name twice; the message names the option.
    """
    try:
        parsed = json.loads(text, object_pairs_hook=_unique_names)
    except _DuplicateName as error:
        raise OptionError(
            f"{option} names {error.args[0]!r} twice; name each topic and partition once"
        ) from None
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise OptionError(f"{option} is {text!r}; it must be {expected}")
    return parsed


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise _DuplicateName(name)
        found[name] = value
    return found
