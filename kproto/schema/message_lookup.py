"""Finds messages by message name, API name or api key, ignoring case.

All commands that take a message name use this module, so that they accept the same names and
suggest the same corrections.
"""

from __future__ import annotations

from typing import Final

from .definitions import Definitions, union
from .specs import MessageSpec
from .unknown_names import UnknownNameError, unknown_name_error

__all__ = ["find_messages"]

#: Maximum number of digits of an api key, which is an int16.
_MAX_KEY_DIGITS: Final = 5

#: Maximum number of characters of an unknown name that the error shows.
_SHOWN: Final = 80


def find_messages(text: str, known: Definitions | None = None) -> tuple[MessageSpec, ...]:
    """Returns the messages that `text` names; ignores case.

    `text` is tried as the name of a message (`HeartbeatRequest`), then as the name (`Heartbeat`) or
    key (`12`) of an API, then as a former name. An API stands for its request and response, in this
    order. `known` are the definitions to search, by default Kafka's. Raises UnknownNameError, which
    suggests the nearest names, if nothing is found.
    """
    known = union() if known is None else known
    if text.isascii() and text.isdigit():
        return _of_key(text, known)
    by_folded = {name.casefold(): name for name in known}
    folded = text.casefold()
    for names in ((folded,), (f"{folded}request", f"{folded}response")):
        found = tuple(known[by_folded[name]] for name in names if name in by_folded)
        if found:
            return found
    former = {name.casefold(): name for name in known.former_names()}
    for names in ((folded,), (f"{folded}request", f"{folded}response")):
        if any(name in former for name in names):
            return tuple(
                known[now] for name in names if name in former for now in known.former(former[name])
            )
    raise unknown_name_error("no message is called", text[:_SHOWN], known)


def _of_key(text: str, known: Definitions) -> tuple[MessageSpec, ...]:
    of_apis = [spec for spec in known.values() if spec.type in {"request", "response"}]
    if len(text) <= _MAX_KEY_DIGITS:
        found = [spec for spec in of_apis if spec.api_key == int(text)]
        if found:
            return tuple(sorted(found, key=lambda spec: spec.type))
    keys = sorted({spec.api_key for spec in of_apis if spec.api_key is not None})
    hint = f"; keys are {keys[0]} to {keys[-1]}" if keys else ""
    raise UnknownNameError(f"no message has the api key {text[:_SHOWN]}{hint}")
