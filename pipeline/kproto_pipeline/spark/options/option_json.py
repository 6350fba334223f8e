"""The JSON in options: an object, in which no name stands twice.

Owns what `json` alone lets pass: of a name that stands twice it takes the last, and nothing tells.
"""

from __future__ import annotations

import json

from kproto.wire.errors import ConfigurationError

__all__ = ["read_json_object"]


class _DoubledName(Exception):  # noqa: N818 - never leaves this module
    """A name that stands twice in one object."""


def read_json_object(option: str, text: str, *, wanted: str) -> dict[str, object]:
    """The object that `text` is; `wanted` says what it must be, for the error.

    Raises:
        ConfigurationError: naming the option, and the name that stands twice.
    """
    try:
        parsed = json.loads(text, object_pairs_hook=_single_names)
    except _DoubledName as error:
        raise ConfigurationError(
            f"{option} names {error.args[0]!r} twice; name each topic and partition once"
        ) from None
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ConfigurationError(f"{option} is {text!r}; it must be {wanted}")
    return parsed


def _single_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise _DoubledName(name)
        found[name] = value
    return found
