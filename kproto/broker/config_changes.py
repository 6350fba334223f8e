"""Applies the operations of IncrementalAlterConfigs to the configs of a resource (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from .api_error import api_error
from .config_table import split_list

__all__ = ["AlterOp", "ConfigChange", "apply_changes"]

ConfigChange: TypeAlias = tuple[str, int, str | None]
"""A config name, an `AlterOp`, and a value; the value is None for DELETE."""


class AlterOp:
    """Names the operations of IncrementalAlterConfigs (KIP-339)."""

    SET: Final = 0
    DELETE: Final = 1
    APPEND: Final = 2
    SUBTRACT: Final = 3


_LIST_OPERATIONS: Final = {AlterOp.APPEND: "APPEND", AlterOp.SUBTRACT: "SUBTRACT"}


def apply_changes(
    configs: Mapping[str, str], changes: Sequence[ConfigChange], lists: Mapping[str, str]
) -> dict[str, str]:
    """Returns the configs of a resource after `changes`.

    `lists` has the default of each config to which APPEND and SUBTRACT apply. Raises
    INVALID_REQUEST for a config that is named twice and for a missing value, INVALID_CONFIG for
    APPEND or SUBTRACT on any other config, and UNKNOWN_SERVER_ERROR for an unknown operation, as
    Kafka does.
    """
    if len({name for name, *_ in changes}) < len(changes):
        raise api_error("INVALID_REQUEST", "Error due to duplicate config keys")
    for name, operation, value in changes:
        if operation != AlterOp.DELETE and value is None:
            raise api_error("INVALID_REQUEST", f"Null value not supported for : {name}")
    changed = dict(configs)
    for name, operation, value in changes:
        if operation == AlterOp.DELETE:
            changed.pop(name, None)
        elif operation == AlterOp.SET:
            changed[name] = str(value)
        elif operation not in _LIST_OPERATIONS:
            raise api_error("UNKNOWN_SERVER_ERROR", f"Unknown operation {operation}")
        elif name not in lists:
            raise api_error(
                "INVALID_CONFIG",
                f"Can't {_LIST_OPERATIONS[operation]} to key {name} because its type is not LIST.",
            )
        else:
            before, parts = split_list(changed.get(name, lists[name])), split_list(str(value))
            if operation == AlterOp.APPEND:
                after = [*before, *(part for part in parts if part not in before)]
            else:
                after = [part for part in before if part not in parts]
            changed[name] = ",".join(after)
    return changed
