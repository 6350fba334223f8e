"""Formats tables of the protocol: messages with versions, error codes with their handling."""

from __future__ import annotations

from typing import Final

from kproto.client.core.retry import Remedy, remedy_of_code
from kproto.protocol.error_codes import ERRORS
from kproto.protocol.error_meanings import error_meaning
from kproto.schema.definitions import union
from kproto.schema.specs import MessageSpec

from .tables import code, table

__all__ = ["error_codes", "message_index"]

REMEDIES: Final = {
    Remedy.RETRY: "retries",
    Remedy.REFRESH: "refreshes metadata, retries",
    Remedy.FIND_COORDINATOR: "finds the coordinator, retries",
    Remedy.FAIL: "raises",
}


def message_index() -> str:
    """Returns a table of all messages, by API key; messages without a key come last, by name."""
    definitions = union()
    return table(
        ("class of `kproto.messages`", "type", "API key", "versions", "flexible from"),
        (
            (
                code(spec.name),
                spec.type,
                "" if spec.api_key is None else str(spec.api_key),
                str(spec.valid_versions),
                str(spec.flexible_versions.lowest) if spec.flexible_versions else "",
            )
            for spec in sorted((definitions[name] for name in definitions), key=_order)
        ),
    )


def _order(spec: MessageSpec) -> tuple[bool, int, str]:
    return spec.api_key is None, spec.api_key or 0, spec.name


def error_codes() -> str:
    """Returns a table of all error codes, with the client's reaction to each."""
    return table(
        ("code", "name", "retriable", "the client", "meaning"),
        (
            (
                str(each.code),
                code(each.name),
                "yes" if each.retriable else "no",
                "" if each.name == "NONE" else REMEDIES[remedy_of_code(each.code)],
                error_meaning(each.code).meaning,
            )
            for each in sorted(ERRORS.values())
        ),
    )
